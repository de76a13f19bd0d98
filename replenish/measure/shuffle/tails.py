"""Two-sided tail probabilities of the normal, gamma and Poisson laws, by the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

_LARGE = 1e4  # from this shape on, the cube root of a gamma variable is normal to six digits
_SMALLEST = 1e-300


def normal_p(z: float) -> float:
    """Return how likely a standard normal variable is to be as far from 0 as `z`.

    Example:
        >>> round(normal_p(1.96), 3)
        0.05
    """
    return max(math.erfc(abs(z) / math.sqrt(2)), _SMALLEST)


def gamma_p(value: float, mean: float, variance: float) -> float:
    """Return the two-sided p-value of a sum of squares, by the gamma law of its mean and variance.

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


def normal_quantile(p: float) -> float:
    """Return the z with `normal_p(z) == p`.

    Example:
        >>> round(normal_quantile(0.05), 2)
        1.96
    """
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if normal_p(middle) > p else (low, middle)
    return low


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
