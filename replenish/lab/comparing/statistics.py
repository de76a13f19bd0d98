"""What a few seeds allow to be said: medians and means with intervals, paired differences, and a sentence about them.

Errors are in percent, so differences are in points. Nothing here assumes more than a handful of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

COVERAGE = 0.95
#: What an error in percent can be, and what a number can be of which nothing is known.
PERCENT, ANY = (0.0, 100.0), (-math.inf, math.inf)
#: A spread below this share of the numbers themselves is the rounding of floating-point subtraction.
_NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Interval:
    """An interval with the probability that such intervals cover what is estimated."""

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
class PairedDifference:
    """First minus second, seed by seed.

    Attributes:
        seeds: The seeds that both have.
        differences: Their differences, in the order of the seeds.
        mean: Their mean; None without a seed.
        deviation: Their standard deviation (n - 1); None with fewer than two.
        interval: Student's 95 % interval of the mean; None with fewer than two, or where all differences are equal.
        p_value: Of Student's paired test, two-sided; None where there is no interval.
    """

    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    mean: float | None
    deviation: float | None
    interval: Interval | None
    p_value: float | None

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.differences)


def median_with_interval(values: Iterable[float]) -> Estimate:
    """Return the median, with an interval between two of the values themselves.

    The k-th smallest and the k-th largest of n values enclose the median of their distribution, whatever that is,
    with probability 1 - 2 P(Binomial(n, 1/2) < k). The narrowest such interval with at least 95 % is taken; below six
    values none reaches that, and the interval is from the smallest to the largest, with its own, lower coverage.

    Example:
        >>> median_with_interval([3.0, 1.0, 2.0, 5.0, 4.0])
        Estimate(value=3.0, n=5, interval=Interval(low=1.0, high=5.0, coverage=0.9375))
    """
    ordered = sorted(_finite(values))
    n = len(ordered)
    value = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if n < 2:
        return Estimate(value, n, None)
    k, coverage = 1, 1 - 2 * 0.5**n
    missed = 0.5**n
    for larger in range(2, n // 2 + 1):
        missed += math.comb(n, larger - 1) * 0.5**n
        if 1 - 2 * missed < COVERAGE:
            break
        k, coverage = larger, 1 - 2 * missed
    return Estimate(value, n, Interval(ordered[k - 1], ordered[n - k], coverage))


def mean_with_interval(values: Iterable[float], possible: tuple[float, float] = ANY) -> Estimate:
    """Return the mean, with Student's 95 % interval.

    Args:
        values: The numbers.
        possible: The least and the greatest that one can be, beyond which no interval goes.

    Example:
        >>> found = mean_with_interval([1.0, 2.0, 3.0])
        >>> found.value, round(found.interval.low, 3), round(found.interval.high, 3)
        (2.0, -0.484, 4.484)
    """
    numbers = _finite(values)
    n = len(numbers)
    mean = math.fsum(numbers) / n
    if n < 2:
        return Estimate(mean, n, None)
    half = half_width(n, _deviation(numbers, mean))
    low, high = max(mean - half, possible[0]), min(mean + half, possible[1])
    return Estimate(mean, n, Interval(low, high, COVERAGE))


def paired_difference(
    first: Mapping[int, float], second: Mapping[int, float], possible: tuple[float, float] = ANY
) -> PairedDifference:
    """Return first minus second over the seeds that both have.

    Args:
        first: Error by seed.
        second: Error by seed.
        possible: The least and the greatest that an error can be; no interval of a difference goes farther.

    Example:
        >>> found = paired_difference({0: 5.0, 1: 6.0, 2: 9.0}, {0: 4.0, 1: 4.0})
        >>> found.seeds, found.differences, found.mean
        ((0, 1), (1.0, 2.0), 1.5)
    """
    seeds = tuple(sorted(set(first) & set(second)))
    differences = tuple(first[seed] - second[seed] for seed in seeds)
    if not seeds:
        return PairedDifference((), (), None, None, None, None)
    _finite(differences)
    n, mean = len(seeds), math.fsum(differences) / len(seeds)
    if n < 2:
        return PairedDifference(seeds, differences, mean, None, None, None)
    deviation = _deviation(differences, mean)
    if deviation <= _NO_SPREAD * max(abs(value) for seed in seeds for value in (first[seed], second[seed])):
        return PairedDifference(seeds, differences, mean, 0.0, None, None)
    from scipy.special import stdtr  # type: ignore[import-untyped]

    half, widest = half_width(n, deviation), possible[1] - possible[0]
    p_value = 2 * float(stdtr(n - 1, -abs(mean) / (deviation / math.sqrt(n))))
    interval = Interval(max(mean - half, -widest), min(mean + half, widest), COVERAGE)
    return PairedDifference(seeds, differences, mean, deviation, interval, min(p_value, 1.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being looked at together, by Holm's method, in the order given.

    Example:
        >>> holm([0.01, 0.04])
        [0.02, 0.04]
    """
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        p_value = p_values[index]
        if not 0 <= p_value <= 1:
            raise ValueError(f"p_values should lie between 0 and 1, but got {p_value!r}")
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_value))
        adjusted[index] = reached
    return adjusted


def verdict(
    difference: PairedDifference,
    first: str,
    second: str,
    *,
    adjusted_p: float | None = None,
    comparisons: int = 1,
) -> str:
    """Return what paired differences of test error allow to be said, in a sentence or two.

    - The 95 % interval excludes 0: there is a difference, said with its sign and its interval. If `adjusted_p` is given
      and is not below 0.05, it does not stand among the comparisons made together, and that is said.
    - It includes 0: undecided, with the differences that are possible.
    - With fewer than two pairs, or with equal differences throughout, there is no interval, and that is said.

    Args:
        difference: First minus second.
        first: The name of the first.
        second: The name of the second.
        adjusted_p: The p-value after `holm`, if several comparisons are made together.
        comparisons: How many those are.

    Example:
        >>> verdict(paired_difference({0: 5.0, 1: 6.0, 2: 6.9}, {0: 4.0, 1: 4.9, 2: 6.0}), "srs", "reshuffling")
        'srs ended 1.00 points above reshuffling (95 % interval +0.75 to +1.25, n = 3 seeds, paired): a difference.'
    """
    n, mean = difference.n, difference.mean
    if mean is None:
        return f"No seed has ended with both {first} and {second}: nothing can be said about their difference yet."
    if n == 1:
        return (
            f"{first} ended {place(mean, second)} on the one seed that both have: a single pair allows nothing to be "
            "said about the difference. A second seed is the least that gives an interval."
        )
    if difference.interval is None:
        same = "the same error" if not any(difference.differences) else "the same difference"
        return (
            f"{first} ended {place(mean, second)} on each of n = {n} seeds, paired: {same} every time, "
            "so that there is no spread to make an interval from."
        )
    low, high = difference.interval.low, difference.interval.high
    found = (
        f"{first} ended {place(mean, second)} ("
        + ("mean difference 0.00 points, " if _is_level(mean) else "")
        + f"95 % interval {signed(low)} to {signed(high)}, n = {n} seeds, paired)"
    )
    if low > 0 or high < 0:
        if adjusted_p is None or adjusted_p < 1 - COVERAGE:
            return f"{found}: a difference."
        return (
            f"{found}: taken alone a difference, but not among the {comparisons} comparisons made together "
            f"(p = {adjusted_p:.3f} after Holm)."
        )
    return f"{found}: undecided."


def signed(value: float) -> str:
    """Return a number with its sign and two decimals, as differences are printed.

    Example:
        >>> signed(0.4), signed(-0.001)
        ('+0.40', '0.00')
    """
    text = f"{value:+.2f}".replace("-", "−")  # noqa: RUF001
    return "0.00" if text[1:] == "0.00" else text


def place(mean: float, second: str) -> str:
    """Return where a mean difference lies: above, below or level with the second."""
    if _is_level(mean):
        return f"level with {second}"
    return f"{abs(mean):.2f} points {'above' if mean > 0 else 'below'} {second}"


def _is_level(mean: float) -> bool:
    return round(abs(mean), 2) == 0


def half_width(n: int, deviation: float, level: float = 1 - COVERAGE) -> float:
    """Return half the width of Student's interval of a mean of `n` values with this standard deviation."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - level / 2)) * deviation / math.sqrt(n)


def _deviation(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _finite(values: Iterable[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("values should hold at least one number, but got none")
    if odd := [value for value in numbers if not math.isfinite(value)]:
        raise ValueError(f"values should be finite, but got {odd[0]}; a diverged run has no error to average")
    return numbers
