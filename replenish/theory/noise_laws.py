"""The noise of an order: the shapes that its law can have, as functions of sizes alone.

Give every sample a number g_i (a component of its gradient) with mean 0 and variance s2 over the N samples, and let x_t
be the mean of g over batch t. Averaged over all ways to hand out the numbers, E[g_i g_j] is s2 if i = j and
-s2 / (N - 1) if not. So the covariance of two steps is a probability of coincidence: if a sample picked from batch t
and one picked from batch t + d are the same with probability c(d), averaged over t, then

    C(d) = s2 N / (N - 1) [c(d) - 1/N] .

All laws here are this one, exact at finite sizes and long after the start. Spectra and covariances come relative to
white noise, S0 = s2 / B, which is what independent draws have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.kernels import dirichlet, fejer, fejer_shortfall, odd_and_even_powers, poisson, quadrature

Lines = tuple[Floats, Floats]


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The law of an order's noise, relative to white noise; a subclass says its spectrum."""

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
        """B / N, the share of the samples that a batch has; its inverse is the steps of an effective epoch."""
        return self.batch_size / self.num_samples

    @property
    def block(self) -> int | None:
        """How many steps make a block that knows nothing of the others, or None if there are no such blocks."""
        return None

    @abstractmethod
    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectral density at `frequencies`, in cycles a step, without the lines."""

    def lines(self) -> Lines:
        """Return (frequencies, powers) of the lines between 0 and 1/2; a power is that at f and at -f together."""
        return np.empty(0), np.empty(0)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum over all lags d of C(d) r^|d|, r = 1 - `decay`, |r| < 1, without a line at frequency 0.

        This one number is all that linear SGD sees of its noise. Here it is the integral of the spectrum against
        the transform of r^|d|; laws that know a closed form have their own.
        """
        frequencies, weights = quadrature(decay, 1 / self.share)
        total = complex(np.sum(2 * weights * self.continuous(frequencies) * poisson(decay, frequencies)))
        return total + line_sum(decay, self.lines())


def line_sum(decay: complex, lines: Lines) -> complex:
    """Return the lines' part of `NoiseLaw.covariance_sum`; one at frequency 0 is a bias, not noise, and left out."""
    frequencies, powers = lines
    moving = frequencies > 0
    return complex(np.sum(powers[moving] * poisson(decay, frequencies[moving])))


@dataclass(frozen=True)
class WhiteNoise(NoiseLaw):
    """Steps that know nothing of each other: a flat spectrum of some level."""

    level: float = 1.0
    bias: float = 0.0  # the power of a line at frequency 0: how far off the mean of all data the batches are for ever

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
class EpochsNoise(NoiseLaw):
    """Epochs of as many steps each; a subclass says what they have to do with each other."""

    steps: int  # the steps of an epoch
    # The mean over them of B / (size of the batch): 1 where no batch is short.
    inverse_size: float = field(default=1.0, kw_only=True)
    epochs_per_block: ClassVar[int] = 1  # 0 if no epochs are independent of the others

    @property
    def block(self) -> int | None:
        """The steps of the epochs that make a block, if there are blocks."""
        return self.epochs_per_block * self.steps or None


@dataclass(frozen=True)
class EpochNoise(EpochsNoise):
    """Epochs that know nothing of each other, each a random permutation cut into batches: reshuffling.

    A batch of b samples meets itself with probability 1/b, the others of its epoch never, those of other epochs with
    1/N. So S/S0 = N/(N-1) [mean of B/b - (B/N) F], F being Fejér's kernel of the epoch's steps.
    """

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: a dip of an epoch's width at 0."""
        return self.finite_size * (self.inverse_size - self.share * fejer(frequencies, self.steps))

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        at_rest = self.inverse_size - self.share * self.steps  # at decay 0: none where B divides N
        return self.finite_size * (at_rest + self.share * fejer_shortfall(decay, self.steps))


@dataclass(frozen=True)
class PalindromeNoise(EpochsNoise):
    """A permutation, then its reverse, each cut into batches from its own beginning: flip-flop.

    Pairs of epochs know nothing of each other. With N = wB + r, batch i of the way forth and batch j of the way back
    share B - r samples if i + j = w - 1, and r if i + j = w; a short batch lies within the first of the other way.
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
