"""`Effect`: how far a statistic is from a uniform shuffle, its p-value, and the smallest effect that could be found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from replenish.measure.findings import FAULT, OK, WARNING, Finding

#: The significance level of the whole battery.
SIGNIFICANCE = 1e-4
#: Thresholds of a warning and a fault, for the excess of a ratio over 1, a correlation, and a share of the draws.
RATIO, CORRELATION, SHARE = (0.1, 0.5), (0.05, 0.2), (0.01, 0.1)
_POWER = 1.2816  # standard errors beyond the threshold for a power of 0.9
_LARGE = 1e4  # from this shape on, the cube root of a gamma variable is normal to six digits
_SMALLEST = 1e-300


@dataclass(frozen=True)
class Effect:
    """One statistic of the battery.

    Attributes:
        name: The finding's name.
        text: What was measured, as the start of a sentence: "A batch's mean index varies".
        effect: The ratio to a uniform shuffle, or a correlation.
        p: The two-sided p-value, before Holm's adjustment.
        error: The standard error of `effect` under a uniform shuffle.
        share: For counts, the departure as a fraction of all cases; None for other statistics.
        fault_from: The ratio or correlation from which this statistic would be a fault.
        is_correlation: Whether `effect` is a correlation (0 for a uniform shuffle) rather than a ratio.
        even_is_ok: Whether a ratio below 1 is intended, as for stratified batches.
        only_share: Whether only `share` decides the level, since a uniform shuffle never has such cases.
    """

    name: str
    text: str
    effect: float
    p: float
    error: float
    share: float | None = None
    fault_from: float = 1 + RATIO[1]
    is_correlation: bool = False
    even_is_ok: bool = False
    only_share: bool = False

    @property
    def size(self) -> float:
        """The distance of the effect from a uniform shuffle, at least 0."""
        if self.is_correlation:
            return abs(self.effect)
        if self.effect < 1:
            return 0.0 if self.even_is_ok else (1 / self.effect if self.effect > 0 else math.inf) - 1
        return self.effect - 1

    def detectable(self, tests: int) -> float:
        """Return the smallest effect that would be found with probability 0.9 in a battery of so many tests."""
        threshold = -NormalDist().inv_cdf(SIGNIFICANCE / tests / 2)
        reach = (threshold + _POWER) * self.error
        return reach if self.is_correlation else 1 + reach

    def finding(self, adjusted_p: float, tests: int) -> Finding:
        """Return the judgement, by the size of the effect if chance does not explain it."""
        thresholds = CORRELATION if self.is_correlation else RATIO
        level = OK
        if adjusted_p < SIGNIFICANCE:
            for name, least, share in zip((WARNING, FAULT), thresholds, SHARE, strict=True):
                if (self.only_share or self.size >= least) and (self.share is None or abs(self.share) >= share):
                    level = name
        unit = "a correlation of" if self.is_correlation else "a ratio of"
        detectable = self.detectable(tests)
        shown = f"{self.effect:+.3f}" if self.is_correlation else f"{self.effect:.3g}"
        sentence = f"{self.text}: {unit} {shown}, p = {self.p:.2g}."
        if level == OK and detectable > self.fault_from:
            sentence += f" Too few draws to see one below {detectable:.2g}."
        numbers: dict[str, int | float] = {"p_adjusted": adjusted_p, "detectable": detectable}
        if self.share is not None:
            numbers["share"] = self.share
        return Finding(self.name, level, sentence, numbers, effect=self.effect, p=self.p)


def ratio(name: str, text: str, value: float, mean: float, variance: float, *, even_is_ok: bool = False) -> Effect:
    """Return the effect of a sum of squares, given its mean and variance under a uniform shuffle."""
    p = gamma_p(value, mean, variance)
    return Effect(name, text, value / mean, p, math.sqrt(variance) / mean, even_is_ok=even_is_ok)


def correlation(name: str, text: str, value: float, error: float) -> Effect:
    """Return the effect of a correlation with this standard error."""
    return Effect(name, text, value, normal_p(value / error), error, fault_from=CORRELATION[1], is_correlation=True)


def count(name: str, text: str, number: int, mean: float, of: float) -> Effect:
    """Return the effect of a count, given its mean under a uniform shuffle; `of` is the largest possible count."""
    effect = number / mean if mean > 0 else (math.inf if number else 1.0)
    error = (math.sqrt(mean) + 3) / mean if mean > 0 else math.inf
    fault_from = 1 + max(RATIO[1], SHARE[1] * of / mean) if mean > 0 else math.inf
    share = (number - mean) / max(of, 1.0)
    # Three or more equal values make several pairs, so the tail is longer than Poisson's.
    p = max(poisson_p(number, mean), gamma_p(number, mean, mean)) if mean > 0 else poisson_p(number, mean)
    return Effect(name, text, effect, p, error, share=share, fault_from=fault_from)


def most_surprising(effects: list[Effect]) -> Effect:
    """Return the effect with the smallest p, multiplied by the number of effects: a scan counts as one test."""
    worst = min(effects, key=lambda each: (each.p, -each.size))
    return Effect(**{**vars(worst), "p": min(1.0, worst.p * len(effects))})


# Two-sided tail probabilities without scipy, since the core needs only numpy.


def normal_p(z: float) -> float:
    """Return the probability that a standard normal variable is at least as far from 0 as `z`.

    Example:
        >>> round(normal_p(1.96), 3)
        0.05
    """
    return max(math.erfc(abs(z) / math.sqrt(2)), _SMALLEST)


def gamma_p(value: float, mean: float, variance: float) -> float:
    """Return the two-sided p-value of a sum of squares, by the gamma law with this mean and variance.

    Example:
        >>> round(gamma_p(18.31, mean=10, variance=20) / 2, 3)  # chi-square, 10 degrees of freedom
        0.05
    """
    if variance <= 0:
        return 1.0 if value == mean else _SMALLEST
    shape, scale = mean**2 / variance, variance / mean
    return _two_sided(*_gamma(shape, value / scale))


def poisson_p(count: int, mean: float) -> float:
    """Return the two-sided p-value of a count.

    Example:
        >>> round(poisson_p(0, 3.0) / 2, 4)  # exp(-3)
        0.0498
    """
    if mean <= 0:
        return 1.0 if count == 0 else _SMALLEST
    at_least = _gamma(count, mean)[0] if count else 1.0
    return _two_sided(at_least, _gamma(count + 1, mean)[1])


def holm(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's method.

    Example:
        >>> holm([0.01, 0.5, 0.02])
        [0.03, 0.5, 0.04]
    """
    given = list(p_values)
    adjusted, largest = [1.0] * len(given), 0.0
    for rank, place in enumerate(sorted(range(len(given)), key=given.__getitem__)):
        largest = max(largest, min(1.0, (len(given) - rank) * given[place]))
        adjusted[place] = largest
    return adjusted


def _two_sided(lower: float, upper: float) -> float:
    return max(min(1.0, 2 * min(lower, upper)), _SMALLEST)


def _gamma(shape: float, x: float) -> tuple[float, float]:
    """Return the regularised incomplete gamma functions: (P, Q) = (below x, above x)."""
    if x <= 0:
        return 0.0, 1.0
    if shape > _LARGE:  # Wilson and Hilferty, 1931
        z = ((x / shape) ** (1 / 3) - 1 + 1 / (9 * shape)) * 3 * math.sqrt(shape)
        above = math.erfc(z / math.sqrt(2)) / 2
        return math.erfc(-z / math.sqrt(2)) / 2, above
    log_weight = shape * math.log(x) - x - math.lgamma(shape)
    if x < shape + 1:  # the series
        term = total = 1 / shape
        step = shape
        while term > total * 1e-15:
            step += 1
            term *= x / step
            total += term
        below = min(1.0, total * math.exp(log_weight))
        return below, 1 - below
    # Lentz's continued fraction
    tiny = 1e-300
    b = x + 1 - shape
    c, d = 1 / tiny, 1 / b
    fraction = d
    for number in range(1, 100_000):
        a = -number * (number - shape)
        b += 2
        d = 1 / (a * d + b or tiny)
        c = b + a / c or tiny
        fraction *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    above = min(1.0, fraction * math.exp(log_weight))
    return 1 - above, above
