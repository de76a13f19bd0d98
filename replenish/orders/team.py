"""Processes that look for a far place together: each draws its share of the blocks, and they put it together."""

from __future__ import annotations

from typing import NamedTuple

from replenish.draws import Int64Array
from replenish.orders.sequences import IntegerArray


class Hit(NamedTuple):
    """The draws of a block that drew slots which were looked for."""

    block: int
    places: Int64Array  # among the draws of the block
    slots: Int64Array


class Team:
    """Processes that each call the same functions with equal arguments, in the same order; here one alone."""

    size, rank = 1, 0

    def join(self, positions: IntegerArray) -> None:
        """Put into each entry what the process of the highest rank has there, of those that have not -1."""

    def gather(self, hits: list[Hit]) -> list[Hit]:
        """Return what all processes give."""
        return hits


ALONE = Team()
