"""Independent draws: every sample put back at once."""

from __future__ import annotations

import numpy as np

from replenish.draws import Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.orders.blocks import BlockCursor
from replenish.orders.cursor import Cursor, CursorOrder


class IndependentDraws(CursorOrder):
    """Every sample of every batch is drawn uniformly from all, independently: conventional replacement.

    It shares no draws with another order of the same seed.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many draws a step makes: B; it may be more than N.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> IndependentDraws(num_samples=3, batch_size=8).batch(0).shape
        (8,)
    """

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return BlockCursor(_Independent(self))


class _Independent:
    """Blocks of independent draws."""

    def __init__(self, order: IndependentDraws) -> None:
        self._num_samples = order.num_samples
        self.steps_per_block = steps_per_block(order.num_samples, order.batch_size)
        self._shape = (self.steps_per_block, order.batch_size)
        self._words = KeyedWords(order.seed, Purpose.INDEPENDENT)

    def block(self, index: int) -> Int64Array:
        values = self._words.at(index).below(self._num_samples, self._shape[0] * self._shape[1])
        return values.reshape(self._shape).astype(np.int64)
