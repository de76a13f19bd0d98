"""The noise of further kinds of orders: pairs of epochs, random batch sizes, and buffers that are emptied.

Where batches have random sizes, x_t is the sum over batch t over B, the mean size: as DP-SGD takes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.kernels import fejer, fejer_shortfall
from replenish.theory.noise_laws import EpochsNoise, Lines, PalindromeNoise


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
class BinsNoise(EpochsNoise):
    """Every sample once an epoch, in a step of its own choice: balls in bins.

    As reshuffling, but samples know nothing of each other: S/S0 = N/(B T) (1 - F/T), F being Fejér's kernel of the T
    steps of an epoch.
    """

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the spectrum: reshuffling's, but for a factor (N - 1)/N."""
        return (1 - fejer(frequencies, self.steps) / self.steps) / (self.share * self.steps)

    def covariance_sum(self, decay: complex) -> complex:
        """Return the sum in closed form."""
        return fejer_shortfall(decay, self.steps) / self.steps / (self.share * self.steps)


@dataclass(frozen=True)
class BufferNoise(EpochsNoise):
    """Data read in one order for ever through a shuffle buffer of M that is emptied at the end of every epoch.

    A sample's step within its epoch has a law of its own, the same in every epoch and independent of the others. With
    phi_i(w) its characteristic function, S/S0 = N/(N-1) [1 - mean |phi_i|^2], and there are lines at m/T, T steps an
    epoch, of power N/(N-1) mean |phi_i|^2 / T: between reshuffling, where all phi_i are the same and vanish there,
    and shuffle once, where |phi_i| = 1. A sample that enters before draw e leaves at a geometric time, until N - M
    draws are done; if it is there still, it leaves at one of the last M, uniformly.
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

        phi of a sample that enters at draw e has, from its first step on, the terms a + h b with h = q^(draws of that
        step left after e): so the samples of a step need only the means of h and h^2.
        """
        n, b, m, q = self.num_samples, self.batch_size, self.buffer_size, 1 - 1 / self.buffer_size
        drained = n - m  # draws before the buffer is emptied
        turn = np.exp(-2j * np.pi * np.asarray(frequencies, dtype=np.float64))
        # The last m draws, each as likely: the part of each step that they are.
        last = np.array([min((s + 1) * b, n) - max(s * b, drained) for s in range(drained // b, self.steps)]) / m
        tail = sum(part * turn ** (drained // b + s) for s, part in enumerate(last.tolist()))
        # One sample enters with the last draw before that, and all do if there is none.
        total = np.abs(tail) ** 2 * (1 if drained else m)
        # Backwards over the steps in which samples enter; `later` is phi of one that is there when the step ends.
        later = tail
        for step in reversed(range(-(-drained // b))):
            end = min((step + 1) * b, drained)
            h = q ** np.arange(end - step * b, 0, -1, dtype=np.float64)  # entering before each draw of the step
            counts = np.ones(len(h))
            if step == 0:
                counts[0] = m  # the first m are there from the start
            now, change = turn**step, later - turn**step
            total += np.abs(now) ** 2 * counts.sum() + 2 * np.real(now * np.conj(change)) * (counts @ h)
            total += np.abs(change) ** 2 * (counts @ h**2)
            later = now + change * h[0]
        return total / n
