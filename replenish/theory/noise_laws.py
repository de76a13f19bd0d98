"""The noise of an order as a function of the sizes only.

Every sample i has a number g_i (a component of its gradient) with mean 0 and variance s2 over the N samples, and x_t is
the mean of g over batch t. Averaged over all ways to hand out the numbers, E[g_i g_j] is s2 if i = j and -s2 / (N - 1)
if not. So the covariance of two steps is a probability of coincidence: if a sample picked from batch t and one picked
from batch t + d are the same with probability c(d), averaged over t, then

    C(d) = s2 N / (N - 1) [c(d) - 1/N] .

All laws here follow from this. They are exact at finite sizes, long after the start. Spectra and covariances are
relative to white noise, S0 = s2 / B, which is the noise of independent draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from replenish.checks import Floats
from replenish.theory.kernels import (
    dirichlet,
    fejer,
    fejer_shortfall,
    harmonics_sum,
    odd_and_even_powers,
    poisson,
    quadrature,
)

Lines = tuple[Floats, Floats]


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The law of an order's noise, relative to white noise; a subclass has its spectrum."""

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
        """Return (frequencies, powers) of the lines between 0 and 1/2; a power is that at f and at -f together."""
        return np.empty(0), np.empty(0)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum over all lags d of C(d) r^|d|, r = 1 - `decay`, |r| < 1, without a line at frequency 0.

        Linear SGD depends on its noise through this number only. Here it is the integral of the spectrum against the
        transform of r^|d|; laws with a closed form override it.
        """
        frequencies, weights = quadrature(decay, 1 / self.share)
        total = complex(np.sum(2 * weights * self.continuous(frequencies) * poisson(decay, frequencies)))
        return total + line_sum(decay, self.lines())


def line_sum(decay: complex, lines: Lines) -> complex:
    """Return the lines' part of `NoiseLaw.covariance_sum`, without a line at frequency 0, which is a bias."""
    frequencies, powers = lines
    moving = frequencies > 0
    return complex(np.sum(powers[moving] * poisson(decay, frequencies[moving])))


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

    A source with the share w of a batch of B gives w B samples per step, like a training with that batch size. Left
    out are the steps in which a source gives one sample more or less than w B, and the distance of the mixture's mean
    from the mean of all samples, which is intended.
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
    """Epochs of equal numbers of steps; a subclass has their dependence on each other."""

    steps: int  # of an epoch
    # The mean over an epoch's batches of B / (size of the batch): 1 where no batch is short.
    inverse_size: float = field(default=1.0, kw_only=True)
    epochs_per_block: ClassVar[int] = 1  # 0 if no epochs are independent of the others

    @property
    def block(self) -> int | None:
        """The number of steps in a block of epochs, if there are blocks."""
        return self.epochs_per_block * self.steps or None


@dataclass(frozen=True)
class EpochNoise(EpochsNoise):
    """Independent epochs, each a random permutation cut into batches: reshuffling.

    A batch of b samples meets itself with probability 1/b, the others of its epoch never, those of other epochs with
    1/N. So S/S0 = N/(N-1) [mean of B/b - (B/N) F], F being Fejér's kernel of the epoch's steps.
    """

    dip: float | None = field(default=None, kw_only=True)  # the factor of F, if it is not B/N

    def _dip(self) -> float:
        return self.share if self.dip is None else self.dip

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: a dip of an epoch's width at 0."""
        return self.finite_size * (self.inverse_size - self._dip() * fejer(frequencies, self.steps))

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        at_rest = self.inverse_size - self._dip() * self.steps  # at decay 0: none where B divides N
        return self.finite_size * (at_rest + self._dip() * fejer_shortfall(decay, self.steps))


@dataclass(frozen=True)
class PalindromeNoise(EpochsNoise):
    """A permutation, then its reverse, each cut into batches from its own beginning: flip-flop.

    Pairs of epochs are independent. With N = wB + r, batch i of the way forth and batch j of the way back share B - r
    samples if i + j = w - 1, and r if i + j = w; a short batch lies within the first of the other way.
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
        again = sum(weight * odd_and_even_powers(decay, first, count) for weight, first, count in meetings)
        total = sum(weight * count for weight, _, count in meetings)
        at_rest = self.inverse_size + total / self.steps - 2 * self.share * self.steps
        both_ways = fejer_shortfall(decay, 2 * self.steps)
        return self.finite_size * (at_rest + again / self.steps + self.share * both_ways)

    def _meetings(self) -> list[tuple[float, int, int]]:
        """Return (B times the coincidence, first lag, count) of the lags first, first + 2, ... from forth to back."""
        whole, rest = divmod(self.num_samples, self.batch_size)
        part = rest / self.batch_size
        if self.steps == whole:  # no batch is short: there is no rest, or it is dropped
            return [(1 - part, 1, whole), (part, 2, whole - 1)]
        if whole == 0:  # one batch of all samples, forth and back
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
class RepeatedEpochNoise(EpochsNoise):
    """One epoch that is repeated for ever, its batches and all: shuffle once.

    The noise is periodic, so all its power is in lines at m / steps. On average over permutations all have the same
    power, (B/steps) N/(N-1) [mean of 1/b], except the one at 0, which is the lasting distance of the batches from the
    mean of the data: 0 where B divides N.
    """

    epochs_per_block = 0

    def continuous(self, frequencies: Floats) -> Floats:
        """Return 0: there are lines only."""
        return np.zeros_like(frequencies)

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
