"""The way to a far place in a pool's stream: which draw of every slot was the last, found by all processors.

The draws of a block are a pure function of its number, so blocks can be drawn in any order, by several threads (numpy
leaves the interpreter's lock while it works) and by several processes. The last two epochs are replayed, which fills
six of seven slots. Then blocks are looked through backwards for the slots that are left, until every slot has been
seen: first in the list of all slots, then, as fewer are wanted, in a small table that fits the cache, and in the end
only in the random words.
"""

from __future__ import annotations

import copy
import math
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from replenish import scatter
from replenish.draws import DistinctDraws
from replenish.orders.blocks import BlockDraws
from replenish.orders.sequences import IntegerArray
from replenish.orders.team import ALONE, Hit, Team
from replenish.orders.wanted import WantedSlots

Refill = Callable[[int], IntegerArray]  # the positions that refill the slots drawn in a block, all different

Result = TypeVar("Result")

# The least pool that is worth several threads.
LARGE = 2**20
# How many epochs each process replays, all of whose draws it writes to its own pool.
EPOCHS_REPLAYED = 2.0
# How many draws are looked through between two looks at what is left, as long as much is.
DRAWS_AT_ONCE = 2**25


def processors() -> int:
    """Return how many threads to use: one for each processor this process may use, up to 8."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, available)


def replay(draws: BlockDraws, positions: IntegerArray, refill: Refill, start: int, stop: int) -> None:
    """Put into `positions` the refills of the blocks from `start` to `stop`: of a slot drawn again, the last."""
    for block in range(start, stop):
        scatter.assign_in_turn(positions, draws.block(block).ravel(), refill(block))


def last_draws(
    draws: DistinctDraws, refill: Refill, stop: int, dtype: type[np.signedinteger[Any]], team: Team = ALONE
) -> IntegerArray:
    """Return what refilled each slot last before block `stop`, or -1 where it was never drawn.

    The processes of a team look together: all of them call this with equal arguments.
    """
    blocks_per_epoch = draws.num_slots / (draws.steps_per_block * draws.batch_size)
    epochs = min(EPOCHS_REPLAYED, (math.log(draws.num_slots) + 3) / team.size)
    replayed = math.ceil(epochs * blocks_per_epoch)
    ends = [max(0, stop - replayed * (team.size - number)) for number in range(team.size + 1)]
    positions = _replayed(draws, refill, ends[team.rank], ends[team.rank + 1], dtype)
    team.join(positions)
    _search(draws, positions, refill, ends[0], team)
    return positions


def _submit(pool: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Let a thread call a function; or call it here while the interpreter exits, when no thread can be started."""
    try:
        return pool.submit(function, *arguments)
    except RuntimeError:
        done: Future[Result] = Future()
        done.set_result(function(*arguments))
        return done


def _replayed(
    draws: DistinctDraws, refill: Refill, start: int, stop: int, dtype: type[np.signedinteger[Any]]
) -> IntegerArray:
    """Return the last refill of each slot in blocks `start` to `stop`, or -1: threads draw, this one writes."""
    threads = processors()
    own = [copy.deepcopy(draws) for _ in range(threads)]
    positions = np.full(draws.num_slots, -1, dtype=dtype)
    with ThreadPoolExecutor(threads) as pool:
        first = range(start, min(start + threads, stop))
        drawn = deque(_submit(pool, own[block % threads].block, block) for block in first)
        for block in range(start, stop):
            slots = drawn.popleft().result()
            if block + threads < stop:  # by the one that is free now
                drawn.append(_submit(pool, own[block % threads].block, block + threads))
            scatter.assign_in_turn(positions, slots.ravel(), refill(block))
    return positions


def _search(draws: DistinctDraws, positions: IntegerArray, refill: Refill, start: int, team: Team) -> None:
    """Find the last draw before block `start` of the slots that have none yet."""
    threads = processors()
    own = [copy.deepcopy(draws) for _ in range(threads)]
    draws_per_block = draws.steps_per_block * draws.batch_size
    wanted = WantedSlots(positions < 0, draws)
    some = max(team.size, DRAWS_AT_ONCE * team.size // draws_per_block)
    many = max(1, math.ceil(draws.num_slots / draws_per_block / 4))
    with ThreadPoolExecutor(threads) as pool:
        while wanted.left and start > 0:
            stop, start = start, max(0, start - (many if wanted.are_few else min(some, many)))
            mine = range(start, stop)[team.rank :: team.size]
            parts = [_submit(pool, wanted.hits, own[k], mine[k::threads]) for k in range(threads)]
            hits = team.gather([hit for part in parts for hit in part.result()])
            _fill(positions, refill, hits)
            wanted.take_off([hit.slots for hit in hits])


def _fill(positions: IntegerArray, refill: Refill, hits: list[Hit]) -> None:
    """Put in what refilled the slots that were found; of one that was found twice, what did so last."""
    for hit in sorted(hits, key=lambda hit: hit.block):
        scatter.assign_in_turn(positions, hit.slots, refill(hit.block)[hit.places])
