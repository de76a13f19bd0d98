"""Shards, and how the consumers of a run (all workers of all processes) divide a source.

With R ranks of W workers each, consumer number `rank + R * worker` takes every (R W)-th shard, starting from its own
number. So worker (i // R) mod W of rank i mod R reads shard i. Other seekable sources are divided in the same way,
item by item.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from replenish import checks
from replenish.stream.sources import Opener, Source

S = TypeVar("S")
T = TypeVar("T")


class Shards(Generic[S, T]):
    """A source made of shards, which are read one after the other: a callable `start -> iterator`.

    Args:
        shards: The names of the shards, such as file names.
        open_shard: Returns the items of a shard, always the same ones.
        lengths: The number of items in each shard. With them, shards before `start` are not opened, and the processes
            of a run can end together. Without them, everything before `start` is read.

    Example:
        >>> shards = Shards(["ab", "cde", "f"], list, lengths=[2, 3, 1])
        >>> "".join(shards(3)), shards.length, shards.share(0, 2).shards
        ('def', 6, ['ab', 'f'])
    """

    def __init__(
        self, shards: Sequence[S], open_shard: Callable[[S], Iterable[T]], *, lengths: Sequence[int] | None = None
    ) -> None:
        if isinstance(shards, (str, bytes)) or not isinstance(shards, Sequence):
            raise TypeError(
                f"shards should be a list with the name of each shard, but got {shards!r} of type "
                f"{type(shards).__name__}"
            )
        if not callable(open_shard):
            raise TypeError(
                f"open_shard should be a callable shard -> items, but got {open_shard!r} of type "
                f"{type(open_shard).__name__}"
            )
        self.shards = list(shards)
        self.open_shard = open_shard
        self.lengths = None if lengths is None else [checks.integer("each length", n, minimum=0) for n in lengths]
        if self.lengths is not None and len(self.lengths) != len(self.shards):
            raise ValueError(
                f"lengths should have one number for each of the {len(self.shards)} shards, but got {len(self.lengths)}"
            )

    @property
    def length(self) -> int | None:
        """The number of items, or None if `lengths` was not given."""
        return None if self.lengths is None else sum(self.lengths)

    def share(self, index: int, count: int) -> Shards[S, T]:
        """Return the shards of consumer `index` of `count`: every count-th, from number `index` on."""
        lengths = None if self.lengths is None else self.lengths[index::count]
        return Shards(self.shards[index::count], self.open_shard, lengths=lengths)

    def __call__(self, start: int) -> Iterator[T]:
        """Return the items from number `start` on."""
        return islice(self._uncounted(), start, None) if self.lengths is None else self._counted(start)

    def _uncounted(self) -> Iterator[T]:
        found = False
        for shard in self.shards:
            for item in self.open_shard(shard):
                found = True
                yield item
        if self.shards and not found:
            raise ValueError(
                f"shards should give items, but all {len(self.shards)} from {self.shards[0]!r} on are empty here; if "
                f"they are, give lengths=... with 0 for each (a dataset that divides itself among a loader's workers "
                f"gives nothing in some of them: open it undivided)"
            )

    def _counted(self, start: int) -> Iterator[T]:
        assert self.lengths is not None
        for shard, length in zip(self.shards, self.lengths, strict=True):
            if start and start >= length:
                start -= length
                continue
            count = 0
            for count, item in enumerate(self.open_shard(shard), 1):
                if count > length:
                    break
                if count > start:
                    yield item
            if count != length:
                found = f"more than {length}" if count > length else str(count)
                raise ValueError(f"lengths should say how many items shard {shard!r} has, {found}, but got {length}")
            start = 0


class EveryNth(Generic[T]):
    """A source of every count-th item of a seekable source: items index, index + count, index + 2 count, ..."""

    def __init__(self, opener: Opener[T], index: int, count: int) -> None:
        self._opener, self._index, self._count = opener, index, count
        self.length = None if opener.length is None else len(range(index, opener.length, count))

    def __call__(self, start: int) -> Iterator[T]:
        """Return its items from number `start` on."""
        return islice(self._opener.open(self._index + start * self._count), 0, None, self._count)


def share_of_source(source: Source[T], index: int, count: int) -> Any:
    """Return the part of consumer `index` of `count`: its shards, or every count-th item of a seekable source."""
    if count == 1:
        return source
    return source.share(index, count) if isinstance(source, Shards) else EveryNth(Opener(source), index, count)


def shares_of_length(source: Source[T], count: int) -> list[int] | None:
    """Return how many items each of `count` consumers has, or None if it is not known."""
    if isinstance(source, Shards):
        return None if source.lengths is None else [sum(source.lengths[index::count]) for index in range(count)]
    length = Opener(source).length
    return None if length is None else [len(range(index, length, count)) for index in range(count)]


def taken_in_turn(batches: Sequence[int], count: int) -> tuple[list[int], int]:
    """Return how many of a loader's first `count` batches come from each worker, and which worker gives the next.

    A loader takes one batch from each worker in turn, and skips workers that have given all of their `batches`.

    Example:
        >>> taken_in_turn([1, 3, 3], 4)  # of the workers 0, 1, 2, 1, 2, 1, 2
        ([1, 2, 1], 2)
    """

    def taken(rounds: int) -> int:
        return sum(min(each, rounds) for each in batches)

    rounds = bisect_right(range(max(batches) + 1), count, key=taken) - 1
    longer = [worker for worker, each in enumerate(batches) if each > rounds]
    left = count - taken(rounds)
    counts = [min(each, rounds) + (worker in longer[:left]) for worker, each in enumerate(batches)]
    return counts, longer[left] if longer else 0


def batches_together(lengths: Sequence[int], num_replicas: int, batch_size: int) -> list[int]:
    """Return how many batches each consumer gives so that all ranks end together, with the rank that has fewest.

    A rank with more batches stops early, when it has taken that many from its workers in turn.

    Args:
        lengths: The number of items of each consumer, by its number `rank + num_replicas * worker`.
        num_replicas: The number of ranks.
        batch_size: The number of items in a batch. The last batch of a consumer may be short.

    Example:
        >>> batches_together([10, 4, 10, 2], num_replicas=2, batch_size=2)  # ranks have 5 + 5 and 2 + 1
        [2, 2, 1, 1]
    """
    batches = [-(-length // batch_size) for length in lengths]
    end = min(sum(batches[rank::num_replicas]) for rank in range(num_replicas))
    for rank in range(num_replicas):
        own = batches[rank::num_replicas]
        if sum(own) > end:
            batches[rank::num_replicas], _ = taken_in_turn(own, end)
    return batches
