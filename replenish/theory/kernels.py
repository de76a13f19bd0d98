"""The sums of cosines and of powers that the noise laws are made of, without cancellation and without division by zero.

Frequencies f are in cycles per step. A geometric weight r^|d| over lags d is given by its `decay` 1 - r, which is small
where it matters most, so that r itself would have lost its digits; it may be complex (momentum has complex poles).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replenish.checks import Floats

Complexes = NDArray[np.complex128]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SERIES_BELOW = 0.5  # |decay| * steps under which a power series is the more exact


def fejer(frequencies: Floats, steps: int) -> Floats:
    """Return Fejér's kernel, the sum over |d| < steps of (1 - |d|/steps) cos(2 pi f d): `steps` at f = 0."""
    return dirichlet(np.pi * frequencies, steps) ** 2 / steps


def dirichlet(angles: Floats, count: int) -> Floats:
    """Return sin(count * angle) / sin(angle), with its limits at the multiples of pi."""
    sine = np.sin(angles)
    near = np.abs(sine) < 1e-9  # there the limit is right to (count * 1e-9)^2, and the quotient is not
    limit = count * np.where(np.cos(angles) < 0, (-1.0) ** (count - 1), 1.0)
    return np.where(near, limit, np.sin(count * angles) / np.where(near, 1.0, sine))


def fejer_shortfall(decay: complex, steps: int) -> complex:
    """Return steps - (the sum over |d| < steps of (1 - |d|/steps) r^|d|), which is 0 at decay 0.

    With r = 1 - u the binomial series is a finite one, -(2/steps) sum over j >= 1 of (-u)^j C(steps + 1, j + 2): good
    for small u. Otherwise the sum is (1 + r) / (1 - r) - 2 r (1 - r^steps) / (steps (1 - r)^2).
    """
    if abs(decay) * steps > _SERIES_BELOW:
        ratio = 1 - decay
        last = 0 if decay == 1 else complex(np.exp(steps * np.log1p(-decay + 0j)))  # r^steps
        geometric = 2 * ratio * (1 - last) / (steps * decay**2)
        return steps - (1 + ratio) / decay + geometric
    total, term = 0j, (steps + 1) * steps / 2 + 0j  # C(steps + 1, 2)
    for j in range(1, min(steps, 40)):
        term *= -decay * (steps - j) / (j + 2)
        total += term
    return -2 * total / steps


def odd_and_even_powers(decay: complex, first: float, count: int) -> complex:
    """Return r^first + r^(first + 2) + ... of `count` terms, less `count`: 0 at decay 0."""
    if decay == 1 or count == 0:
        return complex(-count)
    log = np.log1p(-decay + 0j)
    run = np.expm1(2 * count * log) / np.expm1(2 * log) if abs(log) > 1e-300 else count
    return complex(np.expm1(first * log) * run + (run - count))


def langevin(argument: complex) -> complex:
    """Return coth z - 1/z, which is z/3 - z^3/45 + ... for small z."""
    z = complex(argument)
    if abs(z) < 0.1:
        square = z * z
        return z * (1 / 3 - square * (1 / 45 - square * (2 / 945 - square * (1 / 4725 - square * 2 / 93555))))
    return complex((1 + np.exp(-2 * z)) / -np.expm1(-2 * z) - 1 / z)


def harmonics_sum(decay: complex, steps: int) -> complex:
    """Return the sum over d of r^|d| ([d is a multiple of steps] - 1/steps): the lines of an epoch except 0."""
    if decay == 1:
        return complex(1 - 1 / steps)
    log = -complex(np.log1p(-decay + 0j))
    return langevin(steps * log / 2) - langevin(log / 2) / steps


def poisson(decay: complex, frequencies: Floats) -> Complexes:
    """Return the transform of r^|d|, the sum over all d of r^|d| cos(2 pi f d) = (1 - r^2) / (1 - 2 r cos w + r^2)."""
    ratio = 1 - decay
    # 1 - 2 r cos w + r^2 = (1 - r)^2 + 2 r (1 - cos w): no cancellation where both are small.
    return decay * (1 + ratio) / (decay**2 + 4 * ratio * np.sin(np.pi * frequencies) ** 2)


def quadrature(decay: complex, period: float) -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1/2] for a spectrum with structure of width 1/period, times `poisson`.

    Panels are a fraction of 1/period wide, and ever narrower towards frequency 0 and towards the pole of the kernel.
    """
    ratio = 1 - decay
    pole = abs(float(np.angle(ratio))) / (2 * np.pi)
    width = max(abs(1 - abs(ratio)) / (2 * np.pi), 1e-14)
    steps = np.linspace(0, 0.5, int(min(max(period, 8), 2**18)) + 1)
    towards_zero = np.geomspace(min(1e-6 / period, 1e-3), 0.5, 60)
    towards_pole = np.geomspace(width / 4, 0.5, 60)
    edges = np.concatenate([steps, towards_zero, pole + towards_pole, pole - towards_pole, [pole]])
    edges = np.unique(edges[(edges >= 0) & (edges <= 0.5)])
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * _NODES).ravel(), (half[:, None] * _WEIGHTS).ravel()
