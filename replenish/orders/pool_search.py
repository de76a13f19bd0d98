"""Jump to a distant place in a pool's stream: find the last draw of every slot, on all processors.

The draws of a block are a pure function of its number, so blocks can be drawn in any order, by several threads (numpy
releases the interpreter's lock while it works) and by several processes. First the last two epochs are replayed, which
fills six of seven slots. Then blocks are searched backwards for draws of the other slots, until each has been found. At
first, draws are looked up in an array of all slots. When fewer slots are left, a small table that fits the cache is
asked first. In the end only the random words of a block are checked.
"""

from __future__ import annotations

import copy
import math
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from replenish import scatter
from replenish.draws import DistinctDraws, Int64Array, UInt64Array
from replenish.orders.sequences import IntegerArray

Booleans = npt.NDArray[np.bool_]
Refill = Callable[[int], IntegerArray]  # the positions that refill the slots drawn in a block, all different

Result = TypeVar("Result")

# The smallest pool for which several threads pay off.
LARGE = 2**20
# How many epochs each process replays. It writes all their draws to its own pool.
EPOCHS_REPLAYED = 2.0
# How many draws are searched between two updates of the list of wanted slots, while it is long.
DRAWS_AT_ONCE = 2**25

# When fewer than 1 in FEW slots are left, a table of stretches of slots is searched first: most have no wanted slot.
FEW = 64
# When fewer than one block in SELDOM draws a wanted slot, it is cheaper to search only the block's random words.
SELDOM = 4
# The number of stretches per wanted slot, and the most bits of a stretch's number: the table must fit the caches.
STRETCHES_PER_SLOT = 64
MOST_STRETCH_BITS = 23
# A bucket is all half words with the same top bits. The half words that give a slot are in at most two buckets if the
# pool has 2**20 slots or more, and a table of so many buckets stays in the nearest caches.
BUCKET_BITS = 18


class SlotDraws(Protocol):
    """Draws of slots, distinct within a step, in blocks of steps. Tests may supply their own."""

    num_slots: int
    batch_size: int
    steps_per_block: int

    def block(self, index: int) -> Int64Array:
        """Return the slots of block `index`, one step per row."""
        ...


class Hit(NamedTuple):
    """The draws of a block that drew wanted slots."""

    block: int
    places: Int64Array  # among the draws of the block
    slots: Int64Array


class SearchGroup:
    """Processes that call the same functions with equal arguments, in the same order. Here there is only one."""

    size, rank = 1, 0

    def join(self, positions: IntegerArray) -> None:
        """Set each entry of `positions` to its value in the highest rank where it is not -1."""

    def gather(self, hits: list[Hit]) -> list[Hit]:
        """Return the hits of all processes."""
        return hits


ONE_PROCESS = SearchGroup()


class WantedSlots:
    """The slots of a pool whose last draw has not been found yet. `remove` updates `is_wanted`."""

    def __init__(self, is_wanted: Booleans, draws: DistinctDraws) -> None:
        self._is_wanted = is_wanted
        self._draws_per_block = draws.steps_per_block * draws.batch_size
        self._one_step = draws.steps_per_block == 1
        self.left = int(np.count_nonzero(is_wanted))
        self._slots: Int64Array | None = None  # listed once they are few
        self._choose_search()

    @property
    def are_few(self) -> bool:
        """Whether so few slots are left that half of the largest table's stretches have none."""
        return FEW * self.left < len(self._is_wanted) and 2 * self.left <= 1 << MOST_STRETCH_BITS

    def remove(self, slots: list[Int64Array]) -> None:
        """Remove the slots that were found."""
        for each in slots:
            new = each[self._is_wanted.take(each)]
            self.left -= len(new) if self._one_step else len(np.unique(new))  # steps of a block may share slots
            self._is_wanted[new] = False
        self._choose_search()

    def _choose_search(self) -> None:
        """Choose how to search for the slots that are left."""
        self._stretches: Booleans | None = None
        self._buckets: Booleans | None = None
        count = len(self._is_wanted)
        if not self.are_few:
            return
        if self._slots is None:
            self._slots = np.flatnonzero(self._is_wanted)
        self._slots = slots = self._slots[self._is_wanted.take(self._slots)]
        # Above 2**32 slots, a slot does not come from a half word.
        if SELDOM * self.left * self._draws_per_block < count <= 2**32:
            self._buckets = _buckets(slots, count)
            return
        bits = min(MOST_STRETCH_BITS, (STRETCHES_PER_SLOT * self.left).bit_length())
        self._shift = max(0, (count - 1).bit_length() - bits)
        self._stretches = np.zeros(((count - 1) >> self._shift) + 1, dtype=np.bool_)
        self._stretches[slots >> self._shift] = True

    def hits(self, draws: DistinctDraws, blocks: range) -> list[Hit]:
        """Return the draws of a wanted slot in these blocks."""
        found = (
            self._hit(draws, block)
            for block in blocks
            if self._buckets is None or self._may_give_wanted(draws.words_of(block))
        )
        return [hit for hit in found if hit.slots.size]

    def _hit(self, draws: DistinctDraws, block: int) -> Hit:
        if (hit := self._hit_as_drawn(draws, block)) is not None:
            return hit
        slots = draws.block(block).ravel()
        places = self._places(slots)
        return Hit(block, places, slots[places])

    def _hit_as_drawn(self, draws: DistinctDraws, block: int) -> Hit | None:
        """Return the hits of a block of one step without finding its repeats, or None if the repeats may matter.

        The first draw of a slot in a step counts. Repeats are replaced from the spare draws and the words after them.
        If none of these gives a wanted slot, it does not matter which draws are repeats.
        """
        if not self._one_step or 2 * draws.batch_size > draws.num_slots:  # `as_drawn` has no larger batches
            return None
        if self.left * draws.num_after_draws > len(self._is_wanted) // 2:  # one of these is likely wanted
            return None
        slots, spare = draws.as_drawn(block)
        if self._is_wanted.take(spare).any() or self._may_give_wanted(draws.next_words()):
            return None
        places = self._places(slots)
        _, first = np.unique(slots[places], return_index=True)
        places = places[np.sort(first)]
        return Hit(block, places, slots[places])

    def _places(self, slots: Int64Array) -> Int64Array:
        """Return the places of the wanted slots."""
        if self._stretches is None:
            return self._is_wanted.take(slots).nonzero()[0]
        near = self._stretches.take(slots >> self._shift).nonzero()[0]
        return near[self._is_wanted.take(slots[near])]

    def _may_give_wanted(self, words: UInt64Array) -> bool:
        """Return whether a half of one of these words may give a wanted slot."""
        halves, count = words.view(np.uint32), len(self._is_wanted)
        if self._buckets is not None:
            halves = halves[self._buckets.take(halves >> np.uint32(32 - BUCKET_BITS))]
        if count > 2**32 or not halves.size:
            return bool(halves.size)
        slots = (halves.astype(np.uint64) * np.uint64(count) >> np.uint64(32)).astype(np.int64)
        return bool(self._is_wanted.take(slots).any())


def _buckets(wanted: Int64Array, num_slots: int) -> Booleans:
    """Return, for each value of a half word's top bits, whether it can give a wanted slot.

    A half word w gives the slot floor(w M / 2**32), so the half words of a slot are a stretch no longer than a bucket.
    """
    buckets = np.zeros(2**BUCKET_BITS, dtype=np.bool_)
    lowest = -(-(wanted.astype(object) * 2**32) // num_slots)
    highest = -(-((wanted.astype(object) + 1) * 2**32) // num_slots) - 1
    for edge in (lowest, highest):
        buckets[np.minimum(edge.astype(np.int64), 2**32 - 1) >> (32 - BUCKET_BITS)] = True
    return buckets


def processors() -> int:
    """Return the number of threads: one for each processor that this process may use, up to 8."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, available)


def replay(draws: SlotDraws, positions: IntegerArray, refill: Refill, start: int, stop: int) -> None:
    """Write the refills of blocks `start` to `stop` to `positions`; the last refill of a slot stays."""
    for block in range(start, stop):
        scatter.assign_in_turn(positions, draws.block(block).ravel(), refill(block))


def last_draws(
    draws: DistinctDraws,
    refill: Refill,
    stop: int,
    dtype: type[np.signedinteger[Any]],
    group: SearchGroup = ONE_PROCESS,
) -> IntegerArray:
    """Return the last refill of each slot before block `stop`, or -1 where it was never drawn.

    The processes of a group search together: all of them call this with equal arguments.
    """
    blocks_per_epoch = draws.num_slots / (draws.steps_per_block * draws.batch_size)
    epochs = min(EPOCHS_REPLAYED, (math.log(draws.num_slots) + 3) / group.size)
    replayed = math.ceil(epochs * blocks_per_epoch)
    ends = [max(0, stop - replayed * (group.size - number)) for number in range(group.size + 1)]
    positions = _replayed(draws, refill, ends[group.rank], ends[group.rank + 1], dtype)
    group.join(positions)
    _search(draws, positions, refill, ends[0], group)
    return positions


def _submit(pool: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Call a function in a thread of the pool, or right here if the interpreter exits and starts no more threads."""
    try:
        return pool.submit(function, *arguments)
    except RuntimeError:
        done: Future[Result] = Future()
        done.set_result(function(*arguments))
        return done


def _replayed(
    draws: DistinctDraws, refill: Refill, start: int, stop: int, dtype: type[np.signedinteger[Any]]
) -> IntegerArray:
    """Return the last refill of each slot in blocks `start` to `stop`, or -1. Threads draw; this thread writes."""
    threads = processors()
    own = [copy.deepcopy(draws) for _ in range(threads)]
    positions = np.full(draws.num_slots, -1, dtype=dtype)
    with ThreadPoolExecutor(threads) as pool:
        first = range(start, min(start + threads, stop))
        drawn = deque(_submit(pool, own[block % threads].block, block) for block in first)
        for block in range(start, stop):
            slots = drawn.popleft().result()
            if block + threads < stop:  # the copy of `draws` that is free now
                drawn.append(_submit(pool, own[block % threads].block, block + threads))
            scatter.assign_in_turn(positions, slots.ravel(), refill(block))
    return positions


def _search(draws: DistinctDraws, positions: IntegerArray, refill: Refill, start: int, group: SearchGroup) -> None:
    """Find the last draw before block `start` of each slot that is still wanted."""
    threads = processors()
    own = [copy.deepcopy(draws) for _ in range(threads)]
    draws_per_block = draws.steps_per_block * draws.batch_size
    wanted = WantedSlots(positions < 0, draws)
    some = max(group.size, DRAWS_AT_ONCE * group.size // draws_per_block)
    many = max(1, math.ceil(draws.num_slots / draws_per_block / 4))
    with ThreadPoolExecutor(threads) as pool:
        while wanted.left and start > 0:
            stop, start = start, max(0, start - (many if wanted.are_few else min(some, many)))
            mine = range(start, stop)[group.rank :: group.size]
            parts = [_submit(pool, wanted.hits, own[k], mine[k::threads]) for k in range(threads)]
            hits = group.gather([hit for part in parts for hit in part.result()])
            _fill(positions, refill, hits)
            wanted.remove([hit.slots for hit in hits])


def _fill(positions: IntegerArray, refill: Refill, hits: list[Hit]) -> None:
    """Write the refills of the slots that were found; the last refill of a slot stays."""
    for hit in sorted(hits, key=lambda hit: hit.block):
        scatter.assign_in_turn(positions, hit.slots, refill(hit.block)[hit.places])
