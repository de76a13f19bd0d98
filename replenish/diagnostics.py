"""Measurements of any order, loader or stream of batches; `replenish.theory` has closed forms of the same quantities.

`measure` runs an `Order` for some effective epochs and counts its draws. `noise_spectrum` and `visit_gaps` measure the
noise of an order and the gaps between visits, for orders, loaders and lists of batches. `measure_mixing` compares pool
sizes on the labels of a stream. `compute_trace` records SRS step by step. Functions named `plot...` draw results.
"""

from replenish.measure.counts import PARTS_PER_EPOCH as PARTS_PER_EPOCH
from replenish.measure.counts import ClassMeasurement as ClassMeasurement
from replenish.measure.counts import Measurement as Measurement
from replenish.measure.counts import PoolMeasurement as PoolMeasurement
from replenish.measure.counts import measure as measure
from replenish.measure.findings import Finding as Finding
from replenish.measure.gaps import MeasuredGaps as MeasuredGaps
from replenish.measure.gaps import visit_gaps as visit_gaps
from replenish.measure.mixing import Mixing as Mixing
from replenish.measure.mixing import measure_mixing as measure_mixing
from replenish.measure.mixing import residence_quantile as residence_quantile
from replenish.measure.plots import plot as plot
from replenish.measure.plots import plot_noise_spectra as plot_noise_spectra
from replenish.measure.plots import plot_visit_gaps as plot_visit_gaps
from replenish.measure.shuffle.quality import ShuffleQuality as ShuffleQuality
from replenish.measure.shuffle.quality import shuffle_quality as shuffle_quality
from replenish.measure.spectrum import MeasuredSpectrum as MeasuredSpectrum
from replenish.measure.spectrum import noise_spectrum as noise_spectrum
from replenish.measure.trace import Step as Step
from replenish.measure.trace import Trace as Trace
from replenish.measure.trace import compute_trace as compute_trace
