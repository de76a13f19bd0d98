"""The noise of an order as a function of the sizes only.

Every sample i has a number g_i (a component of its gradient) with mean 0 and variance s2 over the N samples, and x_t is
the mean of g over batch t. Averaged over all ways to assign the numbers to samples, E[g_i g_j] is s2 if i = j, else
-s2 / (N - 1). So the covariance of two steps follows from a probability of coincidence. If a sample picked from batch t
and one picked from batch t + d are the same with probability c(d), averaged over t, then

    C(d) = s2 N / (N - 1) [c(d) - 1/N] .

All laws here follow from this. They are exact at finite sizes, long after the start. Spectra and covariances are
relative to white noise, S0 = s2 / B, which is the noise of independent draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from replenish.checks import Floats

Complexes = NDArray[np.complex128]
Lines = tuple[Floats, Floats]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SERIES_BELOW = 0.5  # |decay| * steps below which a power series is more exact


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The law of an order's noise, relative to white noise. A subclass defines the spectrum."""

    num_samples: int  # N, at least 2: a single sample makes no noise
    batch_size: int  # B

    def __post_init__(self) -> None:
        if self.num_samples < 2:
            raise ValueError(f"num_samples should be at least 2 for there to be noise, but got {self.num_samples}")

    @property
    def finite_size(self) -> float:
        """N / (N - 1), the factor of the module's law."""
        return self.num_samples / (self.num_samples - 1)

    @property
    def share(self) -> float:
        """B / N; its inverse is the number of steps in an effective epoch."""
        return self.batch_size / self.num_samples

    @property
    def block(self) -> int | None:
        """The number of steps in a block that is independent of the other blocks, or None if there are no blocks."""
        return None

    @abstractmethod
    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectral density at `frequencies`, in cycles per step, without the lines."""

    def lines(self) -> Lines:
        """Return (frequencies, powers) of the lines between 0 and 1/2; a power is the sum of those at f and -f."""
        return np.empty(0), np.empty(0)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum over all lags d of C(d) r^|d|, r = 1 - `decay`, |r| < 1, without a line at frequency 0.

        The noise affects linear SGD only through this number. Here it is the integral of the spectrum times the
        transform of r^|d|. Laws with a closed form override it.
        """
        frequencies, weights = quadrature(decay, 1 / self.share)
        total = complex(np.sum(2 * weights * self.continuous(frequencies) * poisson_kernel(decay, frequencies)))
        return total + line_sum(decay, self.lines())


def line_sum(decay: complex, lines: Lines) -> complex:
    """Return the lines' part of `NoiseLaw.covariance_sum`, without a line at frequency 0, which is a bias."""
    frequencies, powers = lines
    moving = frequencies > 0
    return complex(np.sum(powers[moving] * poisson_kernel(decay, frequencies[moving])))


@dataclass(frozen=True)
class LineNoise(NoiseLaw):
    """Noise that repeats for ever, so that its spectrum has lines only."""

    def continuous(self, frequencies: Floats) -> Floats:
        """Return 0: there are lines only."""
        return np.zeros_like(frequencies)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum over the lines."""
        return line_sum(decay, self.lines())


@dataclass(frozen=True)
class WhiteNoise(NoiseLaw):
    """Independent steps: a flat spectrum."""

    level: float = 1.0
    bias: float = 0.0  # the power of a line at frequency 0: a lasting distance from the mean of the data

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the level."""
        return np.full_like(frequencies, self.level)

    def lines(self) -> Lines:
        """Return the bias, if there is one."""
        return (np.zeros(1), np.array([self.bias])) if self.bias > 1e-12 else super().lines()

    def covariance_sum(self, decay: complex) -> complex:
        """Return the level: only lag 0 counts."""
        return complex(self.level)


@dataclass(frozen=True)
class MixtureNoise(NoiseLaw):
    """Independent sources with fixed shares of each batch, each in its own order: S/S0 = sum of w S_i/S0_i.

    A source with the share w of a batch of B gives w B samples per step, like a training with that batch size. The law
    ignores that some steps have one sample of a source more or less than w B. It also ignores the distance of the
    mixture's mean from the mean of all samples, which is intended.
    """

    parts: tuple[tuple[float, NoiseLaw], ...]  # the share of each source, and its law at its own batch size

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the sum of the sources' spectra, each times its share."""
        return sum((share * law.continuous(frequencies) for share, law in self.parts), np.zeros_like(frequencies))

    def lines(self) -> Lines:
        """Return the lines of all sources, by frequency."""
        each = [(frequencies, share * powers) for share, law in self.parts for frequencies, powers in [law.lines()]]
        frequencies, powers = (np.concatenate(values) for values in zip(*each, strict=True))
        by_frequency = np.argsort(frequencies, kind="stable")
        return frequencies[by_frequency], powers[by_frequency]

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum of the sources' sums, each times its share."""
        return sum((share * law.covariance_sum(decay) for share, law in self.parts), 0j)


# ---- Epochs: each sample once per epoch, or nearly ----


@dataclass(frozen=True)
class EpochsNoise(NoiseLaw):
    """Epochs of equal numbers of steps. A subclass defines how they depend on each other."""

    steps: int  # of an epoch
    # The mean over an epoch's batches of B / (size of the batch): 1 where no batch is short.
    inverse_size: float = field(default=1.0, kw_only=True)
    epochs_per_block: ClassVar[int] = 1  # 0 if no epoch is independent of the others

    @property
    def block(self) -> int | None:
        """The number of steps in a block of epochs, if there are blocks."""
        return self.epochs_per_block * self.steps or None


@dataclass(frozen=True)
class EpochNoise(EpochsNoise):
    """Independent epochs, each a random permutation cut into batches: reshuffling.

    Samples picked from the same batch of b coincide with probability 1/b, from two batches of an epoch never, and from
    batches of different epochs with 1/N. So S/S0 = N/(N-1) [mean of B/b - (B/N) F], F being Fejér's kernel of the
    epoch's steps.
    """

    dip: float | None = field(default=None, kw_only=True)  # the factor of F, if it is not B/N

    def _dip(self) -> float:
        return self.share if self.dip is None else self.dip

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: a dip of an epoch's width at 0."""
        return self.finite_size * (self.inverse_size - self._dip() * fejer(frequencies, self.steps))

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        at_rest = self.inverse_size - self._dip() * self.steps  # the value at decay 0: 0 if B divides N
        return self.finite_size * (at_rest + self._dip() * fejer_shortfall(decay, self.steps))


@dataclass(frozen=True)
class PalindromeNoise(EpochsNoise):
    """A permutation, then its reverse, each cut into batches from its own beginning: flip-flop.

    Pairs of epochs are independent. With N = wB + r, batch i of the permutation and batch j of its reverse share B - r
    samples if i + j = w - 1, and r if i + j = w; a short batch lies within the first batch of the other epoch.
    """

    epochs_per_block = 2

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: a flatter dip than reshuffling's."""
        again, angles = np.zeros_like(frequencies), 2 * np.pi * frequencies
        for weight, first, count in self._meetings():
            again += weight * np.cos((first + count - 1) * angles) * dirichlet(angles, count)
        both_ways = fejer(frequencies, 2 * self.steps)
        return self.finite_size * (self.inverse_size + again / self.steps - self.share * both_ways)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        meetings = self._meetings()
        again = sum(weight * every_second_power(decay, first, count) for weight, first, count in meetings)
        total = sum(weight * count for weight, _, count in meetings)
        at_rest = self.inverse_size + total / self.steps - 2 * self.share * self.steps
        both_ways = fejer_shortfall(decay, 2 * self.steps)
        return self.finite_size * (at_rest + again / self.steps + self.share * both_ways)

    def _meetings(self) -> list[tuple[float, int, int]]:
        """Return (B times the coincidence, first lag, count) of the lags first, first + 2, ... to the reverse epoch."""
        whole, rest = divmod(self.num_samples, self.batch_size)
        part = rest / self.batch_size
        if self.steps == whole:  # no batch is short: there is no rest, or it is dropped
            return [(1 - part, 1, whole), (part, 2, whole - 1)]
        if whole == 0:  # one batch of all samples in each epoch
            return [(1 / part, 1, 1)]
        return [(1 - part, 2, whole), (part, 3, whole - 1), (1.0, 1, 1), (1.0, 2 * whole + 1, 1)]


@dataclass(frozen=True)
class PairedEpochsNoise(PalindromeNoise):
    """Independent pairs of epochs: a permutation, then the same permutation rearranged, without short batches.

    The second epoch has at place p what the first has at `again[p]`.
    """

    again: tuple[int, ...] = field(repr=False)  # for every place of the second epoch, its place in the first

    def _meetings(self) -> list[tuple[float, int, int]]:
        first, second = np.array(self.again) // self.batch_size, np.arange(len(self.again)) // self.batch_size
        lags, counts = np.unique(self.steps + second - first, return_counts=True)
        return [(count / self.batch_size, lag, 1) for lag, count in zip(lags.tolist(), counts.tolist(), strict=True)]


@dataclass(frozen=True)
class RepeatedEpochNoise(LineNoise, EpochsNoise):
    """One epoch, repeated for ever with the same batches: shuffle once.

    The noise is periodic, so all its power is in lines at m / steps. On average over permutations all lines have the
    same power, (B/steps) N/(N-1) [mean of 1/b], except the line at 0. That one is the lasting distance of the batches
    from the mean of the data, and is 0 if B divides N.
    """

    epochs_per_block = 0

    def lines(self) -> Lines:
        """Return the lines; the first is at 0 if batches are dropped or short."""
        number = np.arange(self.steps // 2 + 1)
        powers = np.full(len(number), self.finite_size * self.inverse_size / self.steps)
        powers[(number > 0) & (2 * number < self.steps)] *= 2
        powers[0] = self.finite_size * (self.inverse_size / self.steps - self.share)
        first = 0 if self.num_samples % self.batch_size else 1
        return number[first:] / self.steps, powers[first:]

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form: coth(steps L/2) - coth(L/2)/steps, L = -log r."""
        return self.finite_size * self.inverse_size * harmonics_sum(decay, self.steps)


# ---- Sums of cosines and of powers, without cancellation and without division by zero ----
#
# Frequencies f are in cycles per step. A geometric weight r^|d| over lags d is given by its `decay` 1 - r. Where it
# matters most the decay is small, and r would lose its digits. It may be complex, since momentum has complex poles.


def fejer(frequencies: Floats, steps: int) -> Floats:
    """Return Fejér's kernel, the sum over |d| < steps of (1 - |d|/steps) cos(2 pi f d): `steps` at f = 0."""
    return dirichlet(np.pi * frequencies, steps) ** 2 / steps


def dirichlet(angles: Floats, count: int) -> Floats:
    """Return sin(count * angle) / sin(angle), with its limits at the multiples of pi."""
    sine = np.sin(angles)
    near = np.abs(sine) < 1e-9  # there the limit is exact to (count * 1e-9)^2, but the quotient is not
    limit = count * np.where(np.cos(angles) < 0, (-1.0) ** (count - 1), 1.0)
    return np.where(near, limit, np.sin(count * angles) / np.where(near, 1.0, sine))


def fejer_shortfall(decay: complex, steps: int) -> complex:
    """Return steps - (the sum over |d| < steps of (1 - |d|/steps) r^|d|), which is 0 at decay 0.

    With r = 1 - u this is the finite series -(2/steps) sum over j >= 1 of (-u)^j C(steps + 1, j + 2), which is exact
    for small u. Otherwise the sum over d is (1 + r) / (1 - r) - 2 r (1 - r^steps) / (steps (1 - r)^2).
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


def every_second_power(decay: complex, first: float, count: int) -> complex:
    """Return the sum of `count` terms r^first + r^(first + 2) + ..., minus `count`: 0 at decay 0."""
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
    """Return the sum over d of r^|d| ([d is a multiple of steps] - 1/steps), for an epoch's lines except at 0."""
    if decay == 1:
        return complex(1 - 1 / steps)
    log = -complex(np.log1p(-decay + 0j))
    return langevin(steps * log / 2) - langevin(log / 2) / steps


def poisson_kernel(decay: complex, frequencies: Floats) -> Complexes:
    """Return the transform of r^|d|, the sum over all d of r^|d| cos(2 pi f d) = (1 - r^2) / (1 - 2 r cos w + r^2)."""
    ratio = 1 - decay
    # 1 - 2 r cos w + r^2 = (1 - r)^2 + 2 r (1 - cos w): no cancellation where both are small.
    return decay * (1 + ratio) / (decay**2 + 4 * ratio * np.sin(np.pi * frequencies) ** 2)


def quadrature(decay: complex, period: float) -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1/2] for a spectrum with features of width 1/period, times `poisson_kernel`.

    Panels are a fraction of 1/period wide, and narrower close to frequency 0 and to the pole of the kernel.
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
