"""How many different mini-batches an order can draw: the paper's section 2, equations 1 to 3.

N = `num_samples`, B = `batch_size`. The counts are exact integers or fractions. Their logarithms are computed without
these integers, which may be huge.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.checks import Floats

_MAX_TERMS = 2**20  # a sum of more terms is approximated by an integral
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def batches_per_epoch(num_samples: int, batch_size: int) -> int:
    """Return n_B, the integer nearest to N/B (section 2). We round a tie up; the paper does not say."""
    n, b = checks.dataset(num_samples, batch_size)
    return (2 * n + b) // (2 * b)


def configurations_without_replacement(num_samples: int, batch_size: int, epochs: int = 1) -> int:
    """Count the mini-batches that training over epochs can draw (equation 1; with `epochs`, equation 2).

    Batch k of an epoch takes B of the N - kB samples left: n_E * sum over k < n_B of C(N - kB, B). The last
    term is 0 where n_B was rounded up.

    >>> configurations_without_replacement(5, 2)  # C(5,2) + C(3,2) + C(1,2)
    13
    """
    n, b = checks.dataset(num_samples, batch_size)
    epochs = checks.integer("epochs", epochs, minimum=1)
    return epochs * sum(math.comb(n - k * b, b) for k in range(batches_per_epoch(n, b)))


def configurations_with_replacement(num_samples: int, batch_size: int, epochs: int = 1) -> int:
    """Count the mini-batches that batched replacement or SRS can draw in as many steps: n_E * n_B * C(N, B).

    This is the paper's equation 3.

    >>> configurations_with_replacement(5, 2)
    30
    """
    n, b, steps = _training(num_samples, batch_size, epochs)
    return steps * math.comb(n, b)


def configurations_conventional(num_samples: int, batch_size: int, epochs: int = 1) -> int:
    """Count the multisets that independent draws can give in as many steps: n_E * n_B * C(N+B-1, B) (section 2)."""
    n, b, steps = _training(num_samples, batch_size, epochs)
    return steps * math.comb(n + b - 1, b)


def configurations_ratio(num_samples: int, batch_size: int) -> Fraction:
    """Return the count with replacement over the count without (equation 3 over equation 2); the epochs cancel.

    >>> configurations_ratio(5, 2)
    Fraction(30, 13)
    """
    without = configurations_without_replacement(num_samples, batch_size)
    return Fraction(configurations_with_replacement(num_samples, batch_size), without)


def term_ratio(num_samples: int, batch_size: int, k: int) -> Fraction:
    """Return C(N, B) / C(N - kB, B), equation 3 over equation 2 for batch k of an epoch, k < floor(N/B).

    It is the product over j < B of (N - j) / (N - kB - j): 1 for k = 0, and growing with k.

    >>> term_ratio(5, 2, 1)
    Fraction(10, 3)
    """
    n, b = checks.dataset(num_samples, batch_size)
    k = checks.integer("k", k, minimum=0, maximum=n // b - 1)
    return Fraction(math.comb(n, b), math.comb(n - k * b, b))


def log10_configurations_without_replacement(num_samples: int, batch_size: int, epochs: int = 1) -> float:
    """Return log10 of `configurations_without_replacement`: equation 3 minus the ratio, both as logarithms.

    All logarithms here are exact to within 1e-9, or to within 1e-14 of their value if that is more.

    >>> round(log10_configurations_without_replacement(50_000, 64, 200), 6)
    215.011727
    """
    ratio = log10_configurations_ratio(num_samples, batch_size)
    return log10_configurations_with_replacement(num_samples, batch_size, epochs) - ratio


def log10_configurations_with_replacement(num_samples: int, batch_size: int, epochs: int = 1) -> float:
    """Return log10 of `configurations_with_replacement`."""
    n, b, steps = _training(num_samples, batch_size, epochs)
    return math.log10(steps) + float(_log10_binomial(n, b))


def log10_configurations_conventional(num_samples: int, batch_size: int, epochs: int = 1) -> float:
    """Return log10 of `configurations_conventional`."""
    n, b, steps = _training(num_samples, batch_size, epochs)
    return math.log10(steps) + float(_log10_binomial(n + b - 1, b))


def log10_configurations_ratio(num_samples: int, batch_size: int) -> float:
    """Return log10 of `configurations_ratio`: of n_B over the sum of g(k) = C(N - kB, B) / C(N, B).

    No factor of g(k) exceeds 1 - kB/N, so g(k) <= (1 - kB/N)^B. Terms for which this bound is below 1e-30 are left out.
    If more than a million remain, g falls by less than 1e-4 per term, and the sum is the integral of g from k = -1/2:
    the midpoint rule, with a relative error of (B²/N)²/24 < 2e-10.

    >>> round(log10_configurations_ratio(50_000, 64), 6)
    1.795099
    """
    n, b = checks.dataset(num_samples, batch_size)
    n_b = batches_per_epoch(n, b)
    left_at_cutoff = n * 10.0 ** (-30 / b)
    terms = min(n // b, int((n - left_at_cutoff) / b) + 2)
    if terms <= _MAX_TERMS:
        left = float(n) - b * np.arange(terms)
        weights = np.ones(terms)
    else:
        low, high = max(b, left_at_cutoff), n + b / 2
        left = low + (high - low) * (_NODES + 1) / 2
        weights = (high - low) / (2 * b) * _WEIGHTS
    g = 10 ** (_log10_binomial(left, b) - _log10_binomial(n, b))
    return math.log10(n_b) - math.log10(float(weights @ g))


def log10_term_ratio(num_samples: int, batch_size: int, k: ArrayLike) -> Floats:
    """Return log10 of `term_ratio`, for one k or an array of them."""
    n, b = checks.dataset(num_samples, batch_size)
    left = float(n) - b * checks.integers("k", k, 0, n // b - 1).astype(np.float64)
    return np.maximum(_log10_binomial(n, b) - _log10_binomial(left, b), 0.0)


def _training(num_samples: int, batch_size: int, epochs: int) -> tuple[int, int, int]:
    """Return N, B and the n_E n_B steps of the whole training."""
    n, b = checks.dataset(num_samples, batch_size)
    return n, b, checks.integer("epochs", epochs, minimum=1) * batches_per_epoch(n, b)


def _log10_binomial(n: ArrayLike, chosen: int) -> Floats:
    """Return log10 C(n, chosen) for real n >= chosen, by Stirling's formula and its remainder.

    With m = n - chosen it is m log(n/m) + chosen log(n/chosen) - log(2 pi m chosen/n)/2 and three remainders.
    The large terms have one sign: nothing cancels, as it would between logarithms of factorials.
    """
    n = np.asarray(n, dtype=np.float64)
    m = np.where(n > chosen, n - chosen, 1.0)
    large = m * np.log1p(chosen / m) + chosen * np.log1p(m / chosen) - np.log(2 * np.pi * chosen * (m / n)) / 2
    small = _stirling_remainder(n) - _stirling_remainder(m) - _stirling_remainder(np.asarray(float(chosen)))
    return np.where(n > chosen, (large + small) / math.log(10), 0.0)


def _stirling_remainder(z: Floats) -> Floats:
    """Return log z! - (z + 1/2) log z + z - log(2 pi)/2 for z > 0: by its series if z >= 16."""
    y = 1 / np.maximum(z, 16.0)
    remainder = np.asarray(y * (1 / 12 - y**2 * (1 / 360 - y**2 * (1 / 1260 - y**2 / 1680))))
    small = z < 16
    remainder[small] = [math.lgamma(v + 1) - (v + 0.5) * math.log(v) + v - math.log(2 * math.pi) / 2 for v in z[small]]
    return remainder
