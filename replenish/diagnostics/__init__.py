"""What an order does, measured, for any order and much else; the same quantities are laws in `replenish.theory`.

`measure` runs an `Order` for some effective epochs and counts; `noise_spectrum` and `visit_gaps` measure the noise and
the gaps of orders, loaders and lists of batches. The functions named `plot` draw what was found.
"""

from replenish.diagnostics.gaps import MeasuredGaps as MeasuredGaps
from replenish.diagnostics.gaps import visit_gaps as visit_gaps
from replenish.diagnostics.measurement import PARTS_PER_EPOCH as PARTS_PER_EPOCH
from replenish.diagnostics.measurement import ClassMeasurement as ClassMeasurement
from replenish.diagnostics.measurement import Measurement as Measurement
from replenish.diagnostics.measurement import PoolMeasurement as PoolMeasurement
from replenish.diagnostics.measurement import measure as measure
from replenish.diagnostics.plots import plot as plot
from replenish.diagnostics.plots import plot_noise_spectra as plot_noise_spectra
from replenish.diagnostics.plots import plot_visit_gaps as plot_visit_gaps
from replenish.diagnostics.spectrum import MeasuredSpectrum as MeasuredSpectrum
from replenish.diagnostics.spectrum import noise_spectrum as noise_spectrum
