"""The noise of an order: the shapes that its law can have, as functions of the sizes only.

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
from dataclasses import dataclass

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.kernels import poisson, quadrature

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
        """Return the spectral density at `frequencies`, in cycles per step, without the lines."""

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
class MixtureNoise(NoiseLaw):
    """Sources in fixed shares of each batch, each in its own order, which know nothing of each other.

    A source with the share w of a batch of B gives w B samples per step, as a training with that batch size would draw
    them. Its part of the noise is w times the law of that training: S/S0 = sum over sources of w S_i/S0_i. The steps
    in which a source gives one sample more or less than w B are left out. So is how far the mean of the mixture is from
    the mean of all samples, since the shares are as they were meant.
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
