"""An effect with what is known of its error: from paired differences, or from two sets of them (Welch)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from replenish.lab.comparing.statistics import COVERAGE, Interval

#: A spread below this is the rounding of floating-point subtraction.
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Effect:
    """A mean difference in points, with its standard error: 0 where the differences have no spread.

    It rests on `n` differences of each kind. Degrees of freedom are those of Student's distribution; the deviation is
    the standard deviation of the paired differences, None for a difference of differences.
    """

    mean: float
    error: float
    freedom: float
    n: int
    deviation: float | None = None

    def interval(self, coverage: float = COVERAGE) -> Interval | None:
        """Return Student's interval of the mean; None where there is no spread to make one from."""
        if self.error < _NO_SPREAD:
            return None
        from scipy.special import stdtrit

        half = float(stdtrit(self.freedom, (1 + coverage) / 2)) * self.error
        return Interval(self.mean - half, self.mean + half, coverage)

    @property
    def p_value(self) -> float | None:
        """Of Student's test that the mean is 0, two-sided; None where there is no spread."""
        if self.error < _NO_SPREAD:
            return None
        from scipy.special import stdtr

        return min(1.0, 2 * float(stdtr(self.freedom, -abs(self.mean) / self.error)))


def paired_effect(differences: Sequence[float]) -> Effect | None:
    """Return the mean of paired differences; None for fewer than two.

    Example:
        >>> found = paired_effect([1.0, 2.0, 3.0])
        >>> found.mean, found.n, round(found.interval(0.95).low, 3)
        (2.0, 3, -0.484)
    """
    n = len(differences)
    if n < 2:
        return None
    deviation = statistics.stdev(differences)
    return Effect(statistics.fmean(differences), deviation / math.sqrt(n), n - 1, n, deviation)


def difference_of_differences(first: Sequence[float], second: Sequence[float]) -> Effect | None:
    """Return the mean of the first minus that of the second, by Welch's method; None for fewer than two of either.

    Example:
        >>> found = difference_of_differences([1.0, 2.0, 3.0], [0.0, 0.0, 3.0])
        >>> found.mean, round(found.error, 4), round(found.freedom, 4)
        (1.0, 1.1547, 3.2)
    """
    if min(len(first), len(second)) < 2:
        return None
    parts = [(statistics.variance(each) / len(each), len(each) - 1) for each in (first, second)]
    total = math.fsum(part for part, _ in parts)
    spread = math.fsum(part**2 / freedom for part, freedom in parts)
    freedom = total**2 / spread if spread else float(len(first) + len(second) - 2)
    mean = statistics.fmean(first) - statistics.fmean(second)
    return Effect(mean, math.sqrt(total), freedom, min(len(first), len(second)))
