"""What the orders share whose batches have random sizes."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from replenish.draws import Int64Array, KeyedWords, Purpose
from replenish.orders.cursor import Cursor, CursorOrder


class RaggedOrder(CursorOrder):
    """An order whose batches have random sizes, possibly 0; `batch_size` is their mean.

    An equal share for each of several processes is not possible, so samplers take such an order on one process only.
    """

    batch_sizes_vary = True
    _shaped_by_its_batches = "its batches have random sizes"
    purpose: ClassVar[Purpose]

    @property
    def _steps_per_block(self) -> int:
        """How many steps are drawn together: here an epoch."""
        return self.steps_per_epoch

    @abstractmethod
    def _block(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        """Return (samples, ends): the batches of a block after each other, and where each one ends."""

    def draws_before(self, step: int) -> int:
        """Raise: only drawing the batches shows their sizes."""
        raise ValueError(f"order should have batches of one size, but those of {type(self).__name__} have random sizes")

    def samples(self, start: int, stop: int) -> Int64Array:
        """Raise: draws have no numbers where batches have random sizes."""
        raise ValueError(f"order should have batches of one size, but those of {type(self).__name__} have random sizes")

    def cursor(self) -> Cursor:
        """Return a new cursor at the start; it has one step at a time, since a row of an array has one length."""
        return _RaggedCursor(self)


class _RaggedCursor(Cursor):
    """The block of the current step."""

    def __init__(self, order: RaggedOrder) -> None:
        self._order, self._steps = order, order._steps_per_block
        self._words = KeyedWords(order.seed, order.purpose)
        # A block and its number: one tuple, so that an interrupt cannot part them.
        self._block: tuple[int, Int64Array, list[int]] = (-1, np.empty(0, dtype=np.int64), [0])

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (step, its batch as the only row)."""
        index, place = divmod(step, self._steps)
        if index != self._block[0]:
            samples, ends = self._order._block(self._words.at(index))
            self._block = (index, samples, [0, *ends.tolist()])
        _, samples, bounds = self._block
        return step, samples[bounds[place] : bounds[place + 1]].reshape(1, -1)
