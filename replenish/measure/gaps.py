"""Measured gaps between two visits of a sample; `replenish.theory.visit_gaps` has their law in closed form."""

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
        counts: How many gaps of 0, 1, 2, ... steps there were. The first entry is 0, since a step that has a sample
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
        """Return the fraction of the gaps that are longer than so many effective epochs."""
        longer = np.append(np.cumsum(self.counts[::-1])[::-1], 0)  # gaps of at least 0, 1, ... steps
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

    It misses gaps that are longer than the time measured, and sees too few of about that length: take many epochs. The
    arguments are the same as for `noise_spectrum`.

    Example:
        >>> from replenish import RandomReshuffling
        >>> round(visit_gaps(RandomReshuffling(1000, 10), epochs=20).variance, 2)  # 1/6
        0.17
    """
    return gaps_of(read_draws(source, epochs, start=start, num_samples=num_samples))


def gaps_of(draws: Draws) -> MeasuredGaps:
    """Return the gaps in steps that were read."""
    counter = GapCounter(draws.num_samples)
    counter.add(draws.samples, np.repeat(np.arange(draws.steps), draws.sizes))
    return MeasuredGaps(counter.counts, draws.steps_per_epoch)


class GapCounter:
    """Counts the gaps between successive draws of one sample, many steps at a time.

    Attributes:
        counts: How many gaps of 0, 1, 2, ... steps there were; a step that has a sample twice adds no gap of 0.
        pairs: How many pairs of equal samples there were within steps.
    """

    def __init__(self, num_samples: int) -> None:
        self.counts = np.zeros(1, dtype=np.int64)
        self.pairs = 0
        self._last = np.full(num_samples, -1, dtype=np.int64)

    def add(self, samples: Int64Array, steps: Int64Array) -> None:
        """Count the draws of the next steps, each complete."""
        # Sort by sample, then by time. One integer that packs both sorts faster than an argsort.
        bits = len(samples).bit_length()
        by_sample = (samples << bits) | np.arange(len(samples))
        by_sample.sort()
        samples, steps = by_sample >> bits, steps[by_sample & ((1 << bits) - 1)]
        again = np.zeros(len(samples), dtype=np.bool_)
        again[1:] = samples[1:] == samples[:-1]
        before = np.empty_like(steps)
        before[1:] = steps[:-1]
        before[~again] = self._last[samples[~again]]
        last = np.ones(len(samples), dtype=np.bool_)  # whether a draw is its sample's last
        last[:-1] = ~again[1:]
        self._last[samples[last]] = steps[last]
        gaps = (steps - before)[before >= 0]
        found = np.bincount(gaps[gaps > 0], minlength=len(self.counts))
        found[: len(self.counts)] += self.counts
        self.counts = found
        # c equal samples in one batch make c - 1 gaps of 0, but c (c - 1) / 2 pairs.
        zero = again & (steps == before)
        _, repeats = np.unique(np.stack([samples[zero], steps[zero]]), axis=1, return_counts=True)
        self.pairs += int((repeats * (repeats + 1) // 2).sum())
