"""The gaps between two visits of a sample, measured: what `replenish.theory.visit_gaps` says in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.checks import Floats
from replenish.draws import Int64Array
from replenish.measure.reading import Draws, IndexSource, read_draws


@dataclass(frozen=True, eq=False)
class MeasuredGaps:
    """Gaps that were measured.

    Attributes:
        counts: How many gaps of 0, 1, 2, ... steps there were; of 0 there are none, since a step that has a sample
            twice is one visit.
        steps_per_epoch: The steps of an effective epoch, N/B.
    """

    counts: Int64Array
    steps_per_epoch: float

    @property
    def mean(self) -> float:
        """The mean gap, in effective epochs; nan if no sample was visited twice."""
        return self._moment(0.0, 1)

    @property
    def variance(self) -> float:
        """The variance of the gaps, in effective epochs squared."""
        return self._moment(self.mean, 2)

    def survival(self, epochs: ArrayLike) -> Floats:
        """Return which part of the gaps is longer than so many effective epochs."""
        longer = np.append(np.cumsum(self.counts[::-1])[::-1], 0)  # of at least 0, 1, ... steps
        whole = np.floor(checks.reals("epochs", epochs) * self.steps_per_epoch + 1e-9).astype(np.int64) + 1
        return np.asarray(longer[np.clip(whole, 0, len(longer) - 1)] / max(longer[0], 1))

    def _moment(self, about: float, power: int) -> float:
        total = self.counts.sum()
        gaps = np.arange(len(self.counts)) / self.steps_per_epoch
        return float(self.counts @ (gaps - about) ** power / total) if total else float("nan")


def visit_gaps(
    source: IndexSource, epochs: int = 10, *, start: int = 0, num_samples: int | None = None
) -> MeasuredGaps:
    """Measure the gaps between successive visits of a sample.

    Gaps that are longer than the time measured are missed, and those of about its length too rare: take many epochs.
    The arguments are those of `noise_spectrum`.

    Example:
        >>> from replenish import RandomReshuffling
        >>> round(visit_gaps(RandomReshuffling(1000, 10), epochs=20).variance, 2)  # 1/6
        0.17
    """
    return gaps_of(read_draws(source, epochs, start=start, num_samples=num_samples))


def gaps_of(draws: Draws) -> MeasuredGaps:
    """Return the gaps of steps that were read."""
    by_sample = np.argsort(draws.samples, kind="stable")  # and by time, in which they come
    samples, steps = draws.samples[by_sample], draws.step_of[by_sample]
    gaps = np.diff(steps)[samples[1:] == samples[:-1]]
    return MeasuredGaps(np.bincount(gaps[gaps > 0], minlength=1), draws.steps_per_epoch)
