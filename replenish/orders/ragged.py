"""What the orders share whose batches have random sizes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np

from replenish.draws import Int64Array
from replenish.orders.cursor import Cursor, CursorOrder


class RaggedBlocks(Protocol):
    """Batches of unequal sizes that come in blocks of steps, each found by its number."""

    steps_per_block: int

    def block(self, index: int) -> tuple[Int64Array, Int64Array]:
        """Return (samples, ends): the batches of block `index` after each other, and where each one ends."""
        ...


class RaggedOrder(CursorOrder):
    """An order whose batches have random sizes, possibly 0; `batch_size` is their mean.

    An equal share for each of several processes is not possible, so samplers take such an order on one process only.
    """

    batch_sizes_vary = True

    @abstractmethod
    def _ragged_blocks(self) -> RaggedBlocks:
        """Return where its batches come from."""

    def cursor(self) -> Cursor:
        """Return a new cursor at the start; it has one step at a time, since a row of an array has one length."""
        return _RaggedCursor(self._ragged_blocks())


class _RaggedCursor(Cursor):
    """The block of the current step."""

    def __init__(self, blocks: RaggedBlocks) -> None:
        self._blocks = blocks
        # A block and its number: one tuple, so that an interrupt cannot part them.
        self._block: tuple[int, Int64Array, list[int]] = (-1, np.empty(0, dtype=np.int64), [0])

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (step, its batch as the only row)."""
        index, place = divmod(step, self._blocks.steps_per_block)
        if index != self._block[0]:
            samples, ends = self._blocks.block(index)
            self._block = (index, samples, [0, *ends.tolist()])
        _, samples, bounds = self._block
        return step, samples[bounds[place] : bounds[place + 1]].reshape(1, -1)
