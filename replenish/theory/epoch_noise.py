"""The noise of orders that have epochs: each sample once per epoch, or nearly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.kernels import dirichlet, fejer, fejer_shortfall, harmonics_sum, odd_and_even_powers
from replenish.theory.noise_laws import Lines, NoiseLaw


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


@dataclass(frozen=True)
class BinsNoise(EpochsNoise):
    """Every sample once per epoch, in a random step: balls in bins.

    As reshuffling, but samples know nothing of each other: S/S0 = N/(B T) (1 - F/T), F being Fejér's kernel of the T
    steps of an epoch.
    """

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: reshuffling's, except for a factor (N - 1)/N."""
        return (1 - fejer(frequencies, self.steps) / self.steps) / (self.share * self.steps)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        return fejer_shortfall(decay, self.steps) / self.steps / (self.share * self.steps)


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


@dataclass(frozen=True)
class PairedEpochsNoise(PalindromeNoise):
    """Pairs of epochs that know nothing of other pairs: a permutation, then the same arranged otherwise.

    The second epoch has at place p what the first has at `again[p]`. Two batches of a pair meet by the places they
    share, at a lag that follows from the places; the rest is as with a palindrome, none of whose batches is short.
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
    power, (B/steps) N/(N-1) [mean of 1/b], except the one at 0: that is what the batches are off the mean of all data
    for ever, 0 where B divides N.
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
