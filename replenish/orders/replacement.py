"""Draws with replacement: distinct within a batch, independent of each other, or in proportion to weights."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DistinctDraws, Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.locks import kept_property
from replenish.orders.cursor import Cursor, CursorOrder

_TOTAL = 2**61 - 2**41  # the sum of all weights, to within 2**40; just under 2**61, so that few words are rejected


class BatchedReplacement(CursorOrder):
    """Every step draws distinct samples, uniformly, and puts them all back before the next.

    This is what the paper means by replacement sampling (section 2, equation 3): C(N, B) configurations at
    every step. With the same seed, it draws sample i where `SequencedReplacement` with N slots draws slot i.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many distinct samples a step draws, at most N: B.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> len(set(BatchedReplacement(num_samples=5, batch_size=5).batch(7).tolist()))
        5
    """

    _shaped_by_its_batches = "the samples of each batch are distinct"

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self._refuse_batches_larger_than_the_data(", since the samples of a batch are distinct")

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _DistinctCursor(DistinctDraws(self.num_samples, self.batch_size, self.seed))


class _DistinctCursor(Cursor):
    """Blocks of draws that are the samples themselves."""

    def __init__(self, draws: DistinctDraws) -> None:
        self._draws = draws

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        index = step // self._draws.steps_per_block
        return index * self._draws.steps_per_block, self._draws.block(index)


class IndependentOrder(CursorOrder):
    """An order whose draws are all independent of each other."""

    purpose: ClassVar[Purpose]

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _IndependentCursor(self)

    @property
    @abstractmethod
    def _bound(self) -> int:
        """The bound of the draws, which are in [0, bound)."""

    def _samples(self, draws: Int64Array) -> Int64Array:
        """Return the samples that draws in [0, bound) stand for: here the draws themselves."""
        return draws


class _IndependentCursor(Cursor):
    """Blocks of draws, each from the words of its number."""

    def __init__(self, order: IndependentOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, order.purpose)
        self._steps = steps_per_block(order.num_samples, order.batch_size)

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        order, index = self._order, step // self._steps
        draws = self._words.at(index).below(order._bound, self._steps * order.batch_size)
        return index * self._steps, order._samples(draws).reshape(-1, order.batch_size)


class IndependentDraws(IndependentOrder):
    """Every sample of every batch is drawn uniformly from all samples, independently: conventional replacement.

    It does not share draws with other orders of the same seed.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many draws a step makes: B; it may be more than N.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> IndependentDraws(num_samples=3, batch_size=8).batch(0).shape
        (8,)
    """

    purpose = Purpose.INDEPENDENT

    @property
    def _bound(self) -> int:
        return self.num_samples


class WeightedDraws(IndependentOrder):
    """Every sample of every batch is drawn with probability proportional to its weight, independently of all others.

    It has the distribution of torch's `WeightedRandomSampler` with replacement, without the limit of 2**24 samples. The
    draws are the same on any number of processes. The weights, as whole numbers, divide a line of 2**61 points into
    stretches, and a random word falls into one of them. A guide table leads close to the right stretch, so that a draw
    costs the same for any weights. A positive weight keeps at least one point. For exact frequencies instead of
    independent draws, see `weighted_sequence`.

    Any step costs the draws of its block, about 16,000. The tables take 16 bytes per sample, and are made once.

    Args:
        num_samples, batch_size, seed: As for `IndependentDraws`.
        weights: One non-negative, finite weight per sample, at least one of them positive.

    Example:
        >>> order = WeightedDraws(num_samples=3, batch_size=8, weights=[0, 1, 3])
        >>> order.batch(0).tolist()
        [2, 2, 2, 2, 1, 2, 2, 2]
    """

    purpose = Purpose.WEIGHTED

    def __init__(self, num_samples: int, batch_size: int, *, weights: npt.ArrayLike, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self.weights = checks.weights("weights", weights, self.num_samples)

    @kept_property
    def _tables(self) -> tuple[Int64Array, int, Int64Array]:
        """The ends of the stretches, log2 of the distance between guide posts, and the stretch of each guide post."""
        ends = np.cumsum(on_a_line(self.weights))
        shift = max(0, 61 - (self.num_samples - 1).bit_length())
        posts = np.arange((int(ends[-1]) >> shift) + 1) << shift
        return ends, shift, np.searchsorted(ends, posts, side="right")

    @property
    def _bound(self) -> int:
        return int(self._tables[0][-1])

    def _samples(self, draws: Int64Array) -> Int64Array:
        ends, shift, guide = self._tables
        # Begin at the stretch of the last guide post before the point. Few points are more than two stretches further.
        found = guide.take(draws >> shift)
        for _ in range(2):
            found += ends.take(found) <= draws
        beyond = np.flatnonzero(ends.take(found) <= draws)
        found[beyond] = np.searchsorted(ends, draws[beyond], side="right")
        return found


def on_a_line(weights: npt.NDArray[np.float64]) -> Int64Array:
    """Return the weights as whole numbers with a sum of about 2**61; positive ones are at least 1.

    IEEE 754 fixes every operation to the last bit, and sums go from left to right, so that the result is the same on
    every machine.
    """
    scaled = weights / weights.max()  # so that the sum of huge weights stays finite
    total = np.cumsum(scaled)[-1]
    lengths = np.floor(scaled / total * _TOTAL).astype(np.int64)
    lengths[(lengths == 0) & (weights > 0)] = 1
    return lengths
