"""What SRS does if the copies of a sample leave the pool independently of each other.

They nearly do: two copies lie in distinct slots of which a step draws B, so they differ from independent ones by a
part in M. `replenish.theory` has the laws that are exact without this; here are those that need it: samples
missed between any two steps, the gaps between draws, the distribution of copies and of counts. Each copy is drawn at
every step with probability B/M, and all that is left is to know when copies were written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replenish.diagnostics import PARTS_PER_EPOCH

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Places of the sequence that stand for all: the laws change little from one place to the next.
# A sample is drawn within about k = M/N epochs of its refill, so a small pool wants them close together; a large one
# has many copies of each.
PLACES, FEWEST_PLACES, MOST_PLACES = 1024, 64, 16384
# A copy that is still there with a smaller probability is left out.
_NEGLIGIBLE = 1e-12


def part_edges(steps_per_epoch: int, epochs: int) -> Integers:
    """Return the first step of each part of so many epochs, and the step after the last; a part may have none.

    Example:
        >>> part_edges(steps_per_epoch=30, epochs=1)[:5]  # of 20 parts: one has two steps, the next has one
        array([0, 2, 3, 5, 6])
    """
    return -(-np.arange(PARTS_PER_EPOCH * epochs + 1) * steps_per_epoch // PARTS_PER_EPOCH)


@dataclass(frozen=True)
class ExpectedGaps:
    """The expected gaps of a run, in the form of `replenish.diagnostics.Measurement`.

    Their shares by length, in parts of `1 / PARTS_PER_EPOCH` of an effective epoch; the mean, in effective epochs; and
    which part is a single step.
    """

    shares: Floats
    mean: float
    repeats: float


@dataclass(frozen=True)
class IndependentCopies:
    """A pool of M = `pool_size` slots, refilled from N = `num_samples` samples in turn, B = `batch_size` a step.

    Example:
        >>> pool = IndependentCopies(num_samples=50_000, batch_size=50, pool_size=50_000)
        >>> round(pool.unseen(0, 1000), 3), round(pool.unseen(20_000, 21_000), 3)  # the first epoch, a late one
        (0.232, 0.279)
    """

    num_samples: int
    batch_size: int
    pool_size: int

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an effective epoch."""
        return -(-self.num_samples // self.batch_size)

    @property
    def settled(self) -> int:
        """A step at which nothing of the first pool is left and the sequence begins anew."""
        rounds = -(-(self.pool_size + self._lifetime * self.batch_size) // self.num_samples)
        return -(-(rounds * self.num_samples - self.pool_size) // self.batch_size)

    @property
    def places(self) -> Integers:
        """The places of the sequence over which is averaged, evenly spread."""
        wanted = PLACES * self.num_samples / self.pool_size
        number = min(self.num_samples, max(FEWEST_PLACES, min(int(wanted), MOST_PLACES)))
        # In the middle of their parts: the mean over them is then the midpoint rule for the mean over all.
        return (2 * np.arange(number, dtype=np.int64) + 1) * self.num_samples // (2 * number)

    def unseen(self, start: int, stop: int) -> float:
        """Return the part of the samples that no step from `start` up to but not with `stop` draws."""
        born = self._born(start, stop)
        exposed = np.maximum(stop - np.maximum(born, start), 0)
        alive = np.where(born < stop, self._stays(np.maximum(start - born, 0)), 0.0)
        return float(np.prod(1 - alive * (1 - self._stays(exposed)), axis=0).mean())

    def gaps(self, epochs: int) -> ExpectedGaps:
        """Return the gaps between successive draws of one sample that a run of `epochs` shows, in the long run.

        A sample drawn at a step and not in the g - 1 steps after it has a gap of g or more: that is U(g - 1) - U(g),
        where U(g) is the part unseen in g steps, long after the start. A run of T steps shows a gap of g steps if it
        begins in the first T - g: short ones are seen more often than they are.
        """
        steps = self.steps_per_epoch
        edges = np.maximum(part_edges(steps, epochs), 1)  # no gap is 0
        at_least = np.zeros(len(edges))
        for part, edge in enumerate(edges):
            at_least[part] = self._gap_at_least(int(edge))
            if at_least[part] < _NEGLIGIBLE * at_least[0]:
                break
        middles = (edges[:-1] + edges[1:] - 1) / 2  # of the gaps that a part has
        shown = (at_least[:-1] - at_least[1:]) * np.maximum(epochs * steps - middles, 0)
        total = float(shown.sum())
        if total <= 0:  # a run of one step
            return ExpectedGaps(np.zeros(len(edges)), math.nan, math.nan)
        single = (at_least[0] - self._gap_at_least(2)) * (epochs * steps - 1)
        return ExpectedGaps(np.append(shown, 0.0) / total, float(shown @ middles) / total / steps, single / total)

    def copies(self, step: int) -> tuple[Integers, Floats]:
        """Return (inserted, shares): for each of `places` the copies written, and how likely 0, 1, ... are left."""
        born = self._born(step, step)
        there = np.where(born <= step, self._stays(np.maximum(step - born, 0)), 0.0)
        shares = np.zeros((len(there) + 1, there.shape[1]))
        shares[0] = 1
        for chance in there:  # one copy more: it is there or it is not
            shares[1:] = shares[1:] * (1 - chance) + shares[:-1] * chance
            shares[0] *= 1 - chance
        inserted = (self.pool_size + step * self.batch_size - 1 - self.places) // self.num_samples + 1
        return inserted, shares.T

    def counts(self, step: int) -> Floats:
        """Return which part of the samples is drawn 0, 1, 2, ... times before `step`."""
        inserted, shares = self.copies(step)
        drawn = inserted[:, np.newaxis] - np.arange(shares.shape[1])
        kept = drawn >= 0
        return np.bincount(drawn[kept], weights=shares[kept]) / len(inserted)

    def _gap_at_least(self, gap: int) -> float:
        # The draw before the gap may be at any of as many steps as lie between two of the places: so none is missed.
        spacing = max(1, self.steps_per_epoch // len(self.places))
        start = self.settled + spacing
        return (self.unseen(start, start + gap - 1) - self.unseen(start - spacing, start + gap - 1)) / spacing

    @property
    def _lifetime(self) -> int:
        """Steps after which a copy is gone."""
        chance = self.batch_size / self.pool_size
        return 1 if chance == 1 else int(math.log(_NEGLIGIBLE) / math.log1p(-chance)) + 1

    def _born(self, start: int, stop: int) -> Integers:
        """Return the first step that can draw each copy which matters: (copies, places)."""
        first = max(0, self.pool_size + (start - self._lifetime) * self.batch_size) // self.num_samples
        last = (self.pool_size + stop * self.batch_size) // self.num_samples
        positions = np.arange(first, last + 1)[:, np.newaxis] * self.num_samples + self.places
        return np.maximum((positions - self.pool_size) // self.batch_size + 1, 0)

    def _stays(self, steps: Integers) -> Floats:
        """Return the probability that a copy escapes so many draws."""
        if self.batch_size == self.pool_size:
            return (steps == 0).astype(np.float64)
        return np.exp(steps * math.log1p(-self.batch_size / self.pool_size))
