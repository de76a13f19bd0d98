"""What the orders share that know no epochs: the draws of a step are its samples, and nothing is remembered."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

from replenish.draws import Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.orders.cursor import Cursor, CursorOrder


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


class BlockOrder(CursorOrder):
    """An order whose draws are all independent of each other."""

    purpose: ClassVar[Purpose]

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return BlockCursor(_Words(self))

    @abstractmethod
    def _draws(self, words: KeyedWords, count: int) -> Int64Array:
        """Return the next `count` draws."""


class _Words:
    """Blocks of draws, each from the words of its number."""

    def __init__(self, order: BlockOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, order.purpose)
        self.steps_per_block = steps_per_block(order.num_samples, order.batch_size)

    def block(self, index: int) -> Int64Array:
        size = self._order.batch_size
        return self._order._draws(self._words.at(index), self.steps_per_block * size).reshape(-1, size)
