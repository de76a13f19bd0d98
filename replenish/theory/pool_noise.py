"""The noise of a pool: what a pool of slots makes of the noise of the sequence that refills it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from replenish.theory.arguments import Floats
from replenish.theory.noise_laws import Lines, NoiseLaw

_RESONANCE = 1e-5  # how near, in parts, two decays are taken as equal


@dataclass(frozen=True)
class PoolNoise(NoiseLaw):
    """A pool of M slots, of which B are drawn a step and refilled by any sequence, long after the start.

    A copy stays a geometric number of steps, whose characteristic function phi(w) has |phi|^2 = p^2 / (p^2 + 2q (1 -
    cos w)), p = B/M, q = 1 - p. Did copies leave independently of each other, two copies of a sample inserted d steps
    apart would contribute e^(iwd) |phi|^2, and

        S = (1 - |phi|^2) + |phi|^2 S_sequence ,

    white noise with a Lorentzian dip in which the sequence's own noise shows. Exactly, two copies in the pool at once
    cannot lie in one slot: e^(iwd) |phi|^2 + q^d (psi - |phi|^2), psi being the law of the time from the draw of one to
    that of the other if both are there. That changes the height of the first part, by a share of about 1/M.
    """

    pool_size: int  # M
    sequence: NoiseLaw  # the law of the sequence, taken B at a step

    @property
    def leave(self) -> float:
        """The probability p = B/M that a step draws a given slot."""
        return self.batch_size / self.pool_size

    def continuous(self, frequencies: Floats) -> Floats:
        """Return the white noise with its dip, and what the dip lets through of the sequence's."""
        rise = 2 * np.sin(np.pi * frequencies) ** 2  # 1 - cos w
        below = self.leave**2 + 2 * (1 - self.leave) * rise
        passed = self.leave**2 / below
        return self._height * rise / below + passed * self.sequence.continuous(frequencies)

    def lines(self) -> Lines:
        """Return the sequence's lines as the dip lets them through."""
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
        # A decay like the pool's own: 0/0. The sum is smooth there, so a line through two near values will do.
        low, high = (self._passed_sum(self.leave * (1 + side * _RESONANCE)) for side in (-1, 1))
        return own + (low + high) / 2 + (high - low) / 2 * (decay - self.leave) / (self.leave * _RESONANCE)

    @cached_property
    def _met(self) -> float:
        """The sequence's own sum at the pool's decay."""
        return self.sequence.covariance_sum(self.leave).real

    def _passed_sum(self, decay: complex) -> complex:
        """Return the sum for |phi|^2 S_sequence: p/(1+q) |phi|^2's own series q^|d| and r^|d|, in partial fractions."""
        stay, ratio = 1 - self.leave, 1 - decay
        of_pool = decay * (1 + ratio) * stay * self._met
        of_decay = self.leave * (1 + stay) * ratio * self.sequence.covariance_sum(decay)
        return self.leave / (1 + stay) * (of_pool - of_decay) / ((decay - self.leave) * (1 - stay * ratio))

    @cached_property
    def _height(self) -> float:
        """The factor of (1 - cos w) / (p^2 + 2q (1 - cos w)): 2q, but for the slots that exclude each other.

        The pairs of copies in the pool at once are counted by the sequence's own sum, taken at the pool's decay.
        """
        stay = 1 - self.leave
        if stay == 0:
            return 0.0
        other = self.batch_size / (self.pool_size - 1)  # given that one slot escaped, another is drawn
        pairs = self._met / self.finite_size - 1 + self.share * (1 + stay) / self.leave
        excluded = 1 - other * (1 + stay) / (self.leave + stay * other)
        return self.finite_size * 2 * stay * (1 + pairs * excluded)
