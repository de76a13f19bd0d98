"""Sources of fifty numbers for streams: those that can begin anywhere and those that cannot, of known length or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replenish.stream import Shards


class OfUnknownLength:
    """Seekable, and does not say how long it is."""

    def __init__(self, length: int = 50) -> None:
        self._items = length

    def __call__(self, start: int) -> Iterator[int]:
        return iter(range(start, self._items))


class Forward:
    """Can begin again, at its beginning alone."""

    def __init__(self, length: int = 50) -> None:
        self._items = length

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._items))


SHARDS = (range(20), range(20, 40), range(40, 50))
SOURCES: dict[str, Any] = {
    "a range": lambda: range(50),
    "of unknown length": OfUnknownLength,
    "shards": lambda: Shards(SHARDS, list),
    "shards of known length": lambda: Shards(SHARDS, list, lengths=[20, 20, 10]),
    "cannot seek": Forward,
}
