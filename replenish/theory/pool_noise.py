"""The noise of pools and buffers, and of the fixed sequences that refill them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from replenish.checks import Floats
from replenish.theory.noise_laws import EpochNoise, EpochsNoise, LineNoise, Lines, NoiseLaw, dirichlet, harmonics_sum

MAX_LINES = 2**25  # a sequence has N/2 of them where B and N have no common factor
_RESONANCE = 1e-5  # decays that are relatively closer than this are taken as equal


@dataclass(frozen=True)
class PoolNoise(NoiseLaw):
    """A pool of M slots, of which B are drawn per step and refilled by any sequence, long after the start.

    A copy stays a geometric number of steps, whose characteristic function phi(w) has |phi|^2 = p^2 / (p^2 + 2q (1 -
    cos w)), p = B/M, q = 1 - p. If copies left independently of each other, two copies of a sample inserted d steps
    apart would contribute e^(iwd) |phi|^2, and

        S = (1 - |phi|^2) + |phi|^2 S_sequence ,

    white noise with a Lorentzian dip in which the sequence's own noise shows. But two copies in the pool at once cannot
    lie in one slot. So they contribute e^(iwd) |phi|^2 + q^d (psi - |phi|^2), where psi is the characteristic function
    of the time between their draws if both are there. That changes the height of the first part by about 1/M of it.
    """

    pool_size: int  # M
    sequence: NoiseLaw  # the law of the sequence, taken B per step

    @property
    def leave(self) -> float:
        """The probability p = B/M that a step draws a given slot."""
        return self.batch_size / self.pool_size

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the white noise with its dip, plus the sequence's noise in the dip."""
        rise = 2 * np.sin(np.pi * frequencies) ** 2  # 1 - cos w
        below = self.leave**2 + 2 * (1 - self.leave) * rise
        passed = self.leave**2 / below
        return self._height * rise / below + passed * self.sequence.continuous(frequencies)

    def lines(self) -> Lines:
        """Return the sequence's lines, weakened by the pool."""
        frequencies, powers = self.sequence.lines()
        below = self.leave**2 + 4 * (1 - self.leave) * np.sin(np.pi * frequencies) ** 2
        return frequencies, powers * self.leave**2 / below

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum, in closed form if the sequence's is."""
        stay = 1 - self.leave
        if stay == 0:
            return self.sequence.covariance_sum(decay)
        own = self._height * decay / ((1 + stay) * (self.leave + stay * decay))
        if abs(decay - self.leave) >= _RESONANCE * self.leave:
            return own + self._passed_sum(decay)
        # At the pool's own decay the formula is 0/0. The sum is smooth there, so interpolate between two near values.
        low, high = (self._passed_sum(self.leave * (1 + side * _RESONANCE)) for side in (-1, 1))
        return own + (low + high) / 2 + (high - low) / 2 * (decay - self.leave) / (self.leave * _RESONANCE)

    @cached_property
    def _met(self) -> float:
        """The sequence's own sum at the pool's decay."""
        return self.sequence.covariance_sum(self.leave).real

    def _passed_sum(self, decay: complex) -> complex:
        """Return the sum for |phi|^2 S_sequence, |phi|^2 being p/(1+q) times the transform of q^|d|."""
        stay, ratio = 1 - self.leave, 1 - decay
        of_pool = decay * (1 + ratio) * stay * self._met
        of_decay = self.leave * (1 + stay) * ratio * self.sequence.covariance_sum(decay)
        return self.leave / (1 + stay) * (of_pool - of_decay) / ((decay - self.leave) * (1 - stay * ratio))

    @cached_property
    def _height(self) -> float:
        """The factor of (1 - cos w) / (p^2 + 2q (1 - cos w)): 2q, corrected for copies that cannot share a slot.

        The number of pairs of copies in the pool at once follows from the sequence's own sum at the pool's decay.
        """
        stay = 1 - self.leave
        if stay == 0:
            return 0.0
        other = self.batch_size / (self.pool_size - 1)  # the probability that a slot is drawn if a given other is not
        pairs = self._met / self.finite_size - 1 + self.share * (1 + stay) / self.leave
        excluded = 1 - other * (1 + stay) / (self.leave + stay * other)
        return self.finite_size * 2 * stay * (1 + pairs * excluded)


@dataclass(frozen=True)
class SequenceNoise(LineNoise):
    """A fixed permutation that repeats without a gap, B per step: it refills the pool of SRS.

    With N', B' = N, B over their greatest common divisor, it has a line for m = 1 ... N'-1 at the frequency m B'/N',
    folded into [0, 1/2], of power B/(N-1) [sin(pi m B'/N') / (B' sin(pi m/N'))]^2 on average over permutations. The
    strong ones are the harmonics of the effective epoch. If B divides N, this is shuffle once.
    """

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
            return self.finite_size * harmonics_sum(decay, self.num_samples // self.batch_size)
        return super().covariance_sum(decay)


@dataclass(frozen=True)
class GivenSequenceNoise(LineNoise):
    """A fixed sequence, B per step, repeated for ever, with a known number for each sample.

    The batch means repeat after N / gcd(N, B) steps, and their Fourier series is the lines. Several columns of numbers
    are averaged. In data sorted by class, the lines at the first harmonics of the epoch are far above the average over
    all sequences.
    """

    values: NDArray[np.float64] = field(repr=False, compare=False)  # by position: (N, columns), mean 0, mean square 1

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


@dataclass(frozen=True)
class BatchMeanNoise(NoiseLaw):
    """Independent epochs that may end within a batch: a reshuffled sequence, B per step.

    This follows from the noise of single samples. The mean of B samples keeps [sin(pi v B) / (B sin(pi v))]^2 of the
    power at v cycles per sample, and taking every B-th value folds the frequencies (f + l)/B, l = 0 ... B-1, onto f.
    """

    single: EpochNoise  # the law of the stream with batches of one sample

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the folded spectrum."""
        result = np.zeros_like(frequencies)
        for part in range(self.batch_size):
            folded = (frequencies + part) / self.batch_size
            kept = (dirichlet(np.pi * folded, self.batch_size) / self.batch_size) ** 2
            result += kept * self.single.continuous(folded)
        return result


@dataclass(frozen=True)
class BufferNoise(EpochsNoise):
    """Data read in one order for ever through a shuffle buffer of M that is emptied at the end of every epoch.

    A sample's step within its epoch has the same distribution in every epoch, and epochs are independent. With phi_i(w)
    its characteristic function, S/S0 = N/(N-1) [1 - mean |phi_i|^2], and there are lines at m/T, T steps per epoch, of
    power N/(N-1) mean |phi_i|^2 / T. This lies between reshuffling, where all phi_i are the same and vanish there, and
    shuffle once, where |phi_i| = 1. A sample that enters before draw e leaves after a geometric number of draws. If it
    is still there after N - M draws, it leaves at one of the last M draws, uniformly.
    """

    buffer_size: int  # M
    epochs_per_block = 0

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the white noise and its dip."""
        return self.finite_size * (1 - self._passed(frequencies))

    def lines(self) -> Lines:
        """Return the lines at the harmonics of the epoch."""
        number = np.arange(1, self.steps // 2 + 1)
        powers = self.finite_size * self._passed(number / self.steps) / self.steps
        powers[2 * number < self.steps] *= 2
        return number / self.steps, powers

    def _passed(self, frequencies: Floats) -> Floats:
        """Return the mean of |phi_i|^2 over the samples.

        A sample that enters in a step has phi = a + h b, with a and b the same for all of that step, and h the
        probability that it outlasts the step. So the samples of a step need only the sums of h and h^2.
        """
        n, b, m, q = self.num_samples, self.batch_size, self.buffer_size, 1 - 1 / self.buffer_size
        drained = n - m  # draws before the buffer is emptied
        turn = np.exp(-2j * np.pi * np.asarray(frequencies, dtype=np.float64))
        # The last m draws are equally likely: each step's share of them.
        last = np.array([min((s + 1) * b, n) - max(s * b, drained) for s in range(drained // b, self.steps)]) / m
        tail = sum(part * turn ** (drained // b + s) for s, part in enumerate(last.tolist()))
        # One sample enters at the last draw before these, or all M samples at the start if there is none.
        total = np.abs(tail) ** 2 * (1 if drained else m)
        # Backwards over the steps in which samples enter; `later` is phi of a sample still there when the step ends.
        later = tail
        for step in reversed(range(-(-drained // b))):
            end = min((step + 1) * b, drained)
            h = q ** np.arange(end - step * b, 0, -1, dtype=np.float64)  # entering before each draw of the step
            counts = np.ones(len(h))
            if step == 0:
                counts[0] = m  # the first m are in the buffer from the start
            now, change = turn**step, later - turn**step
            total += np.abs(now) ** 2 * counts.sum() + 2 * np.real(now * np.conj(change)) * (counts @ h)
            total += np.abs(change) ** 2 * (counts @ h**2)
            later = now + change * h[0]
        return total / n
