"""What the orders share that know no epochs: the draws of a step are its samples, and nothing is remembered."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol

from replenish.draws import Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.orders.cursor import Cursor, CursorOrder

# Blocks of more draws are drawn step by step: several steps share a key where a batch is larger than the data.
MOST_DRAWS_PER_BLOCK = 2**20


class BlockDraws(Protocol):
    """Draws that come in blocks of steps, each found by its number."""

    steps_per_block: int

    def block(self, index: int) -> Int64Array:
        """Return the draws of block `index`, one step per row."""
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
        draws = _Words(self)
        large = draws.steps_per_block * self.batch_size > MOST_DRAWS_PER_BLOCK
        return _StepCursor(draws) if large else BlockCursor(draws)

    @property
    @abstractmethod
    def _bound(self) -> int:
        """What the draws are below."""

    def _samples(self, draws: Int64Array) -> Int64Array:
        """Return the samples that draws in [0, bound) stand for: here themselves."""
        return draws


class _Words:
    """Blocks of draws, each from the words of its number."""

    def __init__(self, order: BlockOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, order.purpose)
        self.steps_per_block = steps_per_block(order.num_samples, order.batch_size)

    def block(self, index: int) -> Int64Array:
        order, count = self._order, self.steps_per_block * self._order.batch_size
        return order._samples(self._words.at(index).below(order._bound, count)).reshape(-1, order.batch_size)

    def row(self, index: int, place: int) -> Int64Array:
        """Return one step of block `index`, as an array of one row."""
        order, size = self._order, self._order.batch_size
        words, count = self._words.at(index), self.steps_per_block * size
        drawn = words.below_within(order._bound, count, place * size, (place + 1) * size)
        return self.block(index)[place : place + 1] if drawn is None else order._samples(drawn).reshape(1, -1)


class _StepCursor(Cursor):
    """Blocks too large to be drawn whole where one step is asked for."""

    def __init__(self, draws: _Words) -> None:
        self._draws = draws

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (step, its samples as the only row)."""
        return step, self._draws.row(*divmod(step, self._draws.steps_per_block))
