"""The way to a far place in a pool's stream: which draw of every slot was the last, found by all processors.

The draws of a block are a pure function of its number, so blocks can be drawn in any order and by several threads
(numpy leaves the interpreter's lock while it works). Of a large step, nearly all time goes into sorting it for
repeated slots; here these are seen from the pool itself, in which a repeated slot has the later draw's refill.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import scatter
from replenish.draws import DistinctDraws, Int64Array, UInt64Array
from replenish.orders.sequences import IntegerArray

Booleans = npt.NDArray[np.bool_]
Refill = Callable[[int], IntegerArray]  # the positions that refill the slots drawn in a block, all different

# When one block in so many draws a slot that is still wanted, it is cheaper to look for them in its random words alone.
SELDOM = 4
# Buckets of half words, which are what slots are computed from; and the least pool whose slots each fit into two.
BUCKET_BITS = 20
LARGE = 2**BUCKET_BITS


def processors() -> int:
    """Return how many threads to use: one for each processor this process may use, up to 8."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, available)


def replay(draws: DistinctDraws, positions: IntegerArray, refill: Refill, start: int, stop: int) -> None:
    """Put into `positions` the refills of the blocks from `start` to `stop`, each over those before it."""
    for block in range(start, stop):
        if _is_one_large_step(draws):
            _replay_step(draws, block, positions, refill(block))
        else:  # small steps are sorted in the cache, all of a block at once
            scatter.assign_in_turn(positions, draws.block(block).ravel(), refill(block))


def _is_one_large_step(draws: DistinctDraws) -> bool:
    return draws.steps_per_block == 1 and 2 * draws.batch_size <= draws.num_slots


def _replay_step(draws: DistinctDraws, block: int, positions: IntegerArray, values: IntegerArray) -> None:
    """Replay a block of one large step; its repeats are drawn again as `DistinctDraws.block` does it."""
    slots, spare = draws.as_drawn(block)
    scatter.assign_in_turn(positions, slots, values)
    # A draw that finds another's refill in its slot was followed by that one, which is then a repeat.
    left = positions.take(slots)
    earlier = (left != values).nonzero()[0]
    if not earlier.size:
        return
    of_refill = _Inverse(values)
    places = np.unique(np.concatenate([earlier, of_refill(left[earlier])]))
    by_slot = places[slots[places].argsort(kind="stable")]
    is_first = np.ones(len(by_slot), dtype=np.bool_)
    is_first[1:] = slots[by_slot[1:]] != slots[by_slot[:-1]]
    firsts, wanting = by_slot[is_first], np.sort(by_slot[~is_first])
    positions[slots[firsts]] = values[firsts]
    while wanting.size:
        if spare.size < wanting.size:
            spare = np.concatenate([spare, draws.more_spare(wanting.size)])
        drawn, spare = spare[: wanting.size], spare[wanting.size :]
        # What the step has drawn holds a refill of the step, that of the draw which drew it.
        there = of_refill(positions[drawn])
        free = (there < 0) | (slots[there] != drawn)
        _, first = np.unique(drawn, return_index=True)
        again = np.ones(len(drawn), dtype=np.bool_)
        again[first] = False
        free &= ~again
        slots[wanting[free]] = drawn[free]
        positions[drawn[free]] = values[wanting[free]]
        wanting = wanting[~free]


class _Inverse:
    """Which draw of a block a refill is of: refills are consecutive, and may begin again at 0."""

    def __init__(self, values: IntegerArray) -> None:
        self._first, self._size = int(values[0]), len(values)
        falls = (np.diff(values) < 0).nonzero()[0]
        self._before_zero = int(falls[0]) + 1 if falls.size else self._size

    def __call__(self, values: IntegerArray) -> Int64Array:
        """Return the place of each value among the block's refills, or -1 where it is none of them."""
        places = values.astype(np.int64) - self._first
        inside = (places >= 0) & (places < self._before_zero)
        begun = values.astype(np.int64) + self._before_zero
        around = (values >= 0) & (begun >= self._before_zero) & (begun < self._size) & ~inside
        return np.where(inside, places, np.where(around, begun, -1))


def last_draws(draws: DistinctDraws, refill: Refill, stop: int, dtype: type[np.signedinteger[Any]]) -> IntegerArray:
    """Return what refilled each slot last before block `stop`, or -1 where it was never drawn.

    The last epochs are replayed, each thread a stretch of them into a pool of its own, and the later ones' pools laid
    over the earlier ones'. Then blocks are looked through backwards for the slots that are left, until every slot has
    been seen: their draws, and when few are left, their words alone.
    """
    draws_per_block = draws.steps_per_block * draws.batch_size
    blocks_per_epoch = draws.num_slots / draws_per_block
    epochs = math.log(SELDOM * draws_per_block)
    if _is_one_large_step(draws):  # until it is seldom, too, that a spare draw or a word after it is wanted
        epochs = min(epochs, math.log(10 * (draws.as_drawn(0)[1].size + 2 * draws.next_words().size)))
    start = max(0, stop - math.ceil(epochs * blocks_per_epoch))
    threads = min(2, processors())  # no more, since each has a pool, of gigabytes perhaps
    cuts = [start + (stop - start) * number // threads for number in range(threads + 1)]

    def replayed(number: int) -> IntegerArray:
        positions = np.full(draws.num_slots, -1, dtype=dtype)
        replay(copy.deepcopy(draws), positions, refill, cuts[number], cuts[number + 1])
        return positions

    with ThreadPoolExecutor(threads) as pool:
        *earlier, positions = pool.map(replayed, range(threads))
    while earlier:
        before = earlier.pop()
        np.copyto(positions, before, where=positions < 0)
        del before
    _search(draws, positions, refill, start, max(1, math.ceil(blocks_per_epoch / 4)))
    return positions


def _search(draws: DistinctDraws, positions: IntegerArray, refill: Refill, start: int, at_once: int) -> None:
    """Find the last draw before block `start` of the slots that have none yet."""
    threads = processors()
    own = [copy.deepcopy(draws) for _ in range(threads)]
    is_wanted = positions < 0
    left = int(np.count_nonzero(is_wanted))
    with ThreadPoolExecutor(threads) as pool:
        while left and start > 0:
            stop, start = start, max(0, start - at_once)
            few = SELDOM * left < 4 * at_once and draws.num_slots <= 2**32  # else slots are made of whole words
            buckets = _buckets(np.flatnonzero(is_wanted), draws.num_slots) if few else None
            blocks = range(start, stop)
            parts = [pool.submit(_hits, own[k], blocks[k::threads], buckets, is_wanted) for k in range(threads)]
            hits = [hit for part in parts for hit in part.result()]
            for block, places, slots in sorted(hits, key=lambda hit: hit[0]):
                scatter.assign_in_turn(positions, slots, refill(block)[places])
                is_wanted[slots] = False
            left = int(np.count_nonzero(is_wanted))


def _hits(
    draws: DistinctDraws, blocks: range, buckets: Booleans | None, is_wanted: Booleans
) -> list[tuple[int, Int64Array, Int64Array]]:
    """Return (block, places, slots) of the draws of wanted slots."""
    return [
        (block, *_wanted_draws(draws, block, is_wanted))
        for block in blocks
        if buckets is None or _may_have(draws.words_of(block), draws.num_slots, is_wanted, buckets)
    ]


def _wanted_draws(draws: DistinctDraws, block: int, is_wanted: Booleans) -> tuple[Int64Array, Int64Array]:
    """Return (places, slots) of the draws of a block that are wanted.

    The first draw of a slot in a step stands. Repeats become other slots, of the spare draws: if none of these is
    wanted, nor of the words after them, it does not matter which draws are repeats.
    """
    if _is_one_large_step(draws):
        slots, spare = draws.as_drawn(block)
        if not is_wanted.take(spare).any() and not _may_have(draws.next_words(), draws.num_slots, is_wanted):
            places = is_wanted.take(slots).nonzero()[0]
            _, first = np.unique(slots[places], return_index=True)
            places = places[np.sort(first)]
            return places, slots[places]
    slots = draws.block(block).ravel()
    places = is_wanted.take(slots).nonzero()[0]
    return places, slots[places]


def _buckets(wanted: Int64Array, num_slots: int) -> Booleans:
    """Say for the top bits of a half word whether it can give a slot that is wanted.

    A half word w gives the slot floor(w M / 2**32), so that a slot has a stretch of half words, no longer than a
    bucket.
    """
    buckets = np.zeros(2**BUCKET_BITS, dtype=np.bool_)
    lowest = -(-(wanted.astype(object) * 2**32) // num_slots)
    highest = -(-((wanted.astype(object) + 1) * 2**32) // num_slots) - 1
    for edge in (lowest, highest):
        buckets[np.minimum(edge.astype(np.int64), 2**32 - 1) >> (32 - BUCKET_BITS)] = True
    return buckets


def _may_have(words: UInt64Array, num_slots: int, is_wanted: Booleans, buckets: Booleans | None = None) -> bool:
    """Say whether words can give one of the wanted slots."""
    halves = words.view(np.uint32)
    if buckets is not None:
        halves = halves[buckets.take(halves >> np.uint32(32 - BUCKET_BITS))]
    if num_slots > 2**32 or not halves.size:
        return bool(halves.size)
    slots = (halves.astype(np.uint64) * np.uint64(num_slots) >> np.uint64(32)).astype(np.int64)
    return bool(is_wanted.take(slots).any())
