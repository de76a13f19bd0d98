"""Estimates from a few runs: means and paired differences, each with an interval.

`replenish.lab.verdict` decides from these estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

COVERAGE = 0.95
#: The range of an error in percent, and the range of a number without known limits.
PERCENT, ANY = (0.0, 100.0), (-math.inf, math.inf)
#: A spread below this share of the numbers is only the rounding error of their subtraction.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Interval:
    """An interval and the probability that such intervals cover the estimated value."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Estimate:
    """A value over `n` runs, with an interval where `n` allows one."""

    value: float
    n: int
    interval: Interval | None


@dataclass(frozen=True)
class Difference:
    """The mean of first minus second, with its standard error.

    Attributes:
        mean: The mean; None without a pair.
        n: The number of pairs.
        error: The standard error of the mean; None with fewer than two pairs, 0 where the differences have no spread.
        freedom: Degrees of freedom of Student's distribution.
        seeds: The seeds of the pairs; empty for a difference of two unpaired means.
        differences: The differences, in the order of the seeds.
    """

    mean: float | None
    n: int
    error: float | None
    freedom: float
    seeds: tuple[int, ...] = ()
    differences: tuple[float, ...] = ()

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the differences (n - 1); None with fewer than two pairs, or for unpaired means."""
        return None if self.error is None or not self.differences else self.error * math.sqrt(self.n)

    def interval(self, coverage: float = COVERAGE, possible: tuple[float, float] = ANY) -> Interval | None:
        """Return Student's interval of the mean; None where the differences have no spread.

        Args:
            coverage: The probability that such intervals cover the mean.
            possible: The range of the values themselves. It limits how far their difference can go.
        """
        if not self.error:
            return None
        from scipy.special import stdtrit  # type: ignore[import-untyped]

        return self.around(float(stdtrit(self.freedom, (1 + coverage) / 2)) * self.error, coverage, possible)

    def around(self, half: float, coverage: float, possible: tuple[float, float]) -> Interval:
        """Return the mean plus and minus `half`, cut where values in the range `possible` cannot differ by more."""
        assert self.mean is not None
        widest = possible[1] - possible[0]
        return Interval(max(self.mean - half, -widest), min(self.mean + half, widest), coverage)

    @property
    def p_value(self) -> float | None:
        """The two-sided p-value of Student's test that the mean is 0; None where there is no spread."""
        return None if self.mean is None or not self.error else min(1.0, 2 * self.p_above(abs(self.mean)))

    def p_above(self, distance: float) -> float:
        """Return the p-value of Student's one-sided test for a mean at this `distance` from the null."""
        from scipy.special import stdtr

        assert self.error
        return float(stdtr(self.freedom, -distance / self.error))


def mean_with_interval(values: Iterable[float], possible: tuple[float, float] = ANY) -> Estimate:
    """Return the mean, with Student's 95 % interval.

    Args:
        values: The numbers.
        possible: The least and the greatest possible number; the interval does not go beyond them.

    Example:
        >>> found = mean_with_interval([1.0, 2.0, 3.0])
        >>> found.value, round(found.interval.low, 3), round(found.interval.high, 3)
        (2.0, -0.484, 4.484)
    """
    numbers = _finite(values)
    n, mean = len(numbers), math.fsum(numbers) / len(numbers)
    if n < 2:
        return Estimate(mean, n, None)
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, (1 + COVERAGE) / 2)) * _error(numbers, mean)
    low, high = max(mean - half, possible[0]), min(mean + half, possible[1])
    return Estimate(mean, n, Interval(low, high, COVERAGE))


def paired_difference(first: Mapping[int, float], second: Mapping[int, float]) -> Difference:
    """Return first minus second over the seeds that both have; each argument maps a seed to its value.

    Example:
        >>> found = paired_difference({0: 5.0, 1: 6.0, 2: 9.0}, {0: 4.0, 1: 4.0})
        >>> found.seeds, found.differences, found.mean
        ((0, 1), (1.0, 2.0), 1.5)
    """
    seeds = tuple(sorted(set(first) & set(second)))
    if not seeds:
        return Difference(None, 0, None, 0)
    differences = tuple(_finite(first[seed] - second[seed] for seed in seeds))
    n, mean = len(seeds), math.fsum(differences) / len(seeds)
    if n < 2:
        return Difference(mean, n, None, 0, seeds, differences)
    error = _error(differences, mean)
    largest = max(abs(value) for seed in seeds for value in (first[seed], second[seed]))
    if error * math.sqrt(n) <= _NO_SPREAD * largest:
        error = 0.0
    return Difference(mean, n, error, n - 1, seeds, differences)


def anytime_half_width(n: int, deviation: float, level: float = 1 - COVERAGE) -> float:
    """Return half the width of an interval for a mean difference that you may look at after every seed.

    If the differences are normal, with any variance, the intervals for *all* n from 2 on contain the mean together with
    probability 1 - level. An interval holds the values m that a test martingale does not reject. The martingale is a
    ratio of two likelihoods of the t statistic: for a mean that differs from m by a normal multiple (variance 1) of the
    standard deviation, and for the mean m. Under m it starts at 1, so it ever reaches 1/level with probability at most
    level (Ville's inequality; Lai introduced such mixtures in "On confidence sequences", Ann. Statist. 4, 1976). Solved
    for m, with nu = n - 1 and r = n + 1:

        half-width = s sqrt(nu (c - 1) / (n (1 - c / r))),   c = (sqrt(r) / level)^(2 / n),   infinite if c >= r.

    Args:
        n: The number of differences.
        deviation: Their standard deviation s.
        level: 0.05 for 95 %.

    Example:
        >>> [round(anytime_half_width(n, 1.0), 2) for n in (3, 5, 10, 40)]
        [inf, 3.78, 1.22, 0.53]
    """
    ratio = n + 1.0
    threshold = (math.sqrt(ratio) / level) ** (2 / n)
    if n < 2 or threshold >= ratio:
        return math.inf
    return deviation * math.sqrt((n - 1) * (threshold - 1) / (n * (1 - threshold / ratio)))


def _error(values: Sequence[float], mean: float) -> float:
    n = len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def _finite(values: Iterable[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("values should hold at least one number, but got none")
    if odd := [value for value in numbers if not math.isfinite(value)]:
        raise ValueError(f"values should be finite, but got {odd[0]}; a diverged run has no error to average")
    return numbers
