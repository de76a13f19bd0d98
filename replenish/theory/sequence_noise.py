"""The noise of sequences that come round for ever, lines at the harmonics of the epoch; and of batches cut from any."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replenish.theory.arguments import Floats
from replenish.theory.kernels import dirichlet, langevin
from replenish.theory.noise_laws import EpochsNoise, Lines, NoiseLaw, line_sum

MAX_LINES = 2**25  # a sequence has N/2 of them where B and N have no common factor


@dataclass(frozen=True)
class RepeatedEpochNoise(EpochsNoise):
    """One epoch that is repeated for ever, its batches and all: shuffle once.

    The noise is periodic, so all its power is in lines at m / steps. On average over permutations all have the same
    power, (B/steps) N/(N-1) [mean of 1/b], but for the one at 0: that is what the batches are off the mean of all data
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
        return self.finite_size * self.inverse_size * _harmonics_sum(decay, self.steps)


@dataclass(frozen=True)
class SequenceNoise(NoiseLaw):
    """A fixed permutation that repeats for ever, B at a step, across its seam: what refills the pool of SRS.

    With N', B' = N, B over their greatest common divisor, it has a line for m = 1 ... N'-1 at the frequency m B'/N',
    folded into [0, 1/2], of power B/(N-1) [sin(pi m B'/N') / (B' sin(pi m/N'))]^2 on average over permutations. The
    strong ones are the harmonics of the effective epoch. If B divides N, this is shuffle once.
    """

    def continuous(self, frequencies: Floats) -> Floats:
        """Return 0: there are lines only."""
        return np.zeros_like(frequencies)

    def lines(self) -> Lines:
        """Return the lines, by frequency."""
        return self._lines

    @cached_property
    def _lines(self) -> Lines:
        divisor = math.gcd(self.num_samples, self.batch_size)
        period, width = self.num_samples // divisor, self.batch_size // divisor
        if period > 2 * MAX_LINES:
            raise ValueError(
                f"num_samples should make at most {MAX_LINES} lines with batch_size={self.batch_size}, but got "
                f"{self.num_samples}, which makes {period // 2}; take a batch_size that divides it"
            )
        number = np.arange(1, period // 2 + 1)
        angles = np.pi * number / period
        powers = self.batch_size / (self.num_samples - 1) * (dirichlet(angles, width) / width) ** 2
        powers[2 * number < period] *= 2
        folded = number * width % period
        folded = np.minimum(folded, period - folded)
        by_frequency = np.argsort(folded)
        return folded[by_frequency] / period, powers[by_frequency]

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum: in closed form if B divides N, else over the lines."""
        if self.num_samples % self.batch_size == 0:
            return self.finite_size * _harmonics_sum(decay, self.num_samples // self.batch_size)
        return line_sum(decay, self.lines())


@dataclass(frozen=True)
class GivenSequenceNoise(NoiseLaw):
    """A fixed sequence whose samples have given numbers, rather than any: B at a step, for ever.

    The batch means repeat after N / gcd(N, B) steps, and their Fourier series is the lines. Several columns of numbers
    are averaged. In data sorted by class, the lines at the first harmonics of the epoch are far above the average over
    all sequences.
    """

    values: NDArray[np.float64] = field(repr=False, compare=False)  # by position: (N, columns), mean 0, mean square 1

    def continuous(self, frequencies: Floats) -> Floats:
        """Return 0: there are lines only."""
        return np.zeros_like(frequencies)

    def lines(self) -> Lines:
        """Return the lines, by frequency."""
        return self._lines

    @cached_property
    def _lines(self) -> Lines:
        period = self.num_samples // math.gcd(self.num_samples, self.batch_size)
        places = np.arange(period * self.batch_size) % self.num_samples
        means = self.values[places].reshape(period, self.batch_size, -1).mean(axis=1)
        powers = self.batch_size * (np.abs(np.fft.rfft(means, axis=0)) ** 2).mean(axis=1) / period**2
        number = np.arange(len(powers))
        powers[(number > 0) & (2 * number < period)] *= 2
        return number[1:] / period, powers[1:]

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum over the lines."""
        return line_sum(decay, self.lines())


@dataclass(frozen=True)
class BatchMeanNoise(NoiseLaw):
    """The means of B samples in a row of a stream whose noise is known sample by sample.

    For what draws one sample at a time and is cut into batches afterwards: a shuffle buffer, a reshuffled sequence
    whose epochs end within a batch. The mean of B in a row lets [sin(pi v B) / (B sin(pi v))]^2 of the power through at
    v cycles a sample, and taking every B-th value folds the frequencies (f + l)/B, l = 0 ... B-1, onto f.
    """

    single: NoiseLaw  # the law of the stream with batches of one sample

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the folded spectrum."""
        result = np.zeros_like(frequencies)
        for part in range(self.batch_size):
            folded = (frequencies + part) / self.batch_size
            result += self._transfer(folded) * self.single.continuous(folded)
        return result

    def lines(self) -> Lines:
        """Return the folded lines, those that fall together as one."""
        frequencies, powers = self.single.lines()
        powers = self.batch_size * powers * self._transfer(frequencies)
        folded = np.abs(frequencies * self.batch_size - np.round(frequencies * self.batch_size)).round(12)
        distinct, which = np.unique(folded, return_inverse=True)
        return distinct, np.bincount(which, weights=powers, minlength=len(distinct)).astype(np.float64)

    def _transfer(self, frequencies: Floats) -> Floats:
        return (dirichlet(np.pi * frequencies, self.batch_size) / self.batch_size) ** 2


def _harmonics_sum(decay: complex, steps: int) -> complex:
    """Return the sum over d of r^|d| ([d is a multiple of steps] - 1/steps): the lines of an epoch but for 0."""
    if decay == 1:
        return complex(1 - 1 / steps)
    log = -complex(np.log1p(-decay + 0j))
    return langevin(steps * log / 2) - langevin(log / 2) / steps
