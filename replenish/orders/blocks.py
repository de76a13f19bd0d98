"""What the orders share that know no epochs: the draws of a step are its samples, and nothing is remembered."""

from __future__ import annotations

from typing import Protocol

from replenish.draws import Int64Array
from replenish.orders.cursor import Cursor


class BlockDraws(Protocol):
    """Draws that come in blocks of steps, each found by its number."""

    steps_per_block: int

    def block(self, index: int) -> Int64Array:
        """Return the draws of block `index`, one step a row."""
        ...


class BlockCursor(Cursor):
    """Blocks of draws that are the samples themselves: nothing to remember."""

    def __init__(self, draws: BlockDraws) -> None:
        self._draws = draws

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        index = step // self._draws.steps_per_block
        return index * self._draws.steps_per_block, self._draws.block(index)
