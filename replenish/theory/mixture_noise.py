"""The noise of a mixture, from those of its sources."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.kernels import fejer, fejer_shortfall
from replenish.theory.noise_laws import EpochsNoise, Lines, NoiseLaw


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


@dataclass(frozen=True)
class ReadOnNoise(EpochsNoise):
    """A reshuffled source read on from step to step: S/S0 = N/(N-1) (1 - F/T), F being Fejér's kernel of T steps.

    Its epochs of N/B steps end within batches. T is the nearest whole number.
    """

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: a dip of an epoch's width at 0."""
        return self.finite_size * (1 - fejer(frequencies, self.steps) / self.steps)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        return self.finite_size * fejer_shortfall(decay, self.steps) / self.steps
