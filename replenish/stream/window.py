"""Computes without the items which positions of a stream the pool holds at a step, and the order of the last items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np

from replenish.draws import DistinctDraws, Int64Array, KeyedWords, Purpose, derived_seed
from replenish.orders.pool import Pool
from replenish.orders.sequences import IdentitySequence

T = TypeVar("T")

# The upper bound of positions: sums of two still fit in 64 bits.
MAX_POSITION = 2**62


def positions_before(draws: DistinctDraws, step: int) -> Int64Array:
    """Return the position of the item that each slot holds just before `step` draws.

    Positions count the items read, over all passes. Draw number d refills its slot with position M + d. So the result
    is the pool of `SequencedReplacement` over an endless sequence, found from about M (ln M + 3) draws.
    """
    pool = Pool(draws, IdentitySequence(MAX_POSITION))
    return pool.positions_before(step).astype(np.int64, copy=False)


def full_steps(length: int, pool_size: int, batch_size: int) -> int:
    """Return how many steps find every slot full if the source ends after `length` items."""
    return 0 if length < pool_size else (length - pool_size) // batch_size + 1


def drain_order(seed: int, length: int, left: int) -> list[int]:
    """Return the order in which the `left` items that remain at the end are drawn, a uniform permutation.

    Drawing distinct slots until none is left is the same as cutting such a permutation into batches.
    """
    if left == 0:
        return []
    return KeyedWords(seed, Purpose.DRAIN).at(length).permutations(1, left)[0].tolist()


def seed_of_part(seed: int, index: int) -> int:
    """Return the seed of part `index` of a divided stream. Part 0 keeps the seed itself."""
    return derived_seed(seed, index) if index else seed


def gather(open_at: Callable[[int], Iterator[T]], offsets: Iterable[int], seek_cost: int) -> dict[int, T]:
    """Return the items at `offsets`, which are distinct and ascending, in one pass forward.

    A gap of `seek_cost` items or more is jumped over by another call of `open_at`; a shorter one is read.
    """
    items: dict[int, T] = {}
    iterator: Iterator[T] = iter(())
    at = -seek_cost  # so that the first offset calls `open_at`
    for offset in offsets:
        if offset - at >= seek_cost:
            iterator, at = open_at(offset), offset
        found = list(islice(iterator, offset - at, offset - at + 1))
        if not found:
            raise ValueError(
                f"source should give the items of the run that was saved, of which the one at position {offset} is to "
                f"be read again, but it ended before"
            )
        items[offset] = found[0]
        at = offset + 1
    return items
