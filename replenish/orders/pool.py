"""The pool of slots, without a Python loop over samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from replenish import scatter
from replenish.draws import DistinctDraws, Int64Array
from replenish.orders.cursor import Cursor
from replenish.orders.pool_search import LARGE, ONE_PROCESS, SearchGroup, SlotDraws, last_draws, replay
from replenish.orders.sequences import IntegerArray, Sequence


class Pool(Cursor):
    """The pool of slots at the start of a block of steps, which moves from block to block.

    The slots drawn do not depend on what they hold, and draw number d (counted over all steps) refills its slot with
    position M + d. So a slot holds M + (the number of its last draw), or its own number before its first draw.
    Everything below follows from that fact. Positions are kept modulo the sequence's period.
    """

    def __init__(self, draws: SlotDraws, sequence: Sequence) -> None:
        self._draws = draws
        self._sequence = sequence
        self._draws_per_block = draws.steps_per_block * draws.batch_size
        self._position_type: type[np.signedinteger[Any]] = np.int32 if sequence.period <= 2**31 else np.int64
        self._block_offsets: IntegerArray = np.arange(self._draws_per_block, dtype=self._position_type)
        self._steps_per_run = self._choose_steps_per_run()
        # A large pool finds a distant step with several threads, if the refills of a block are distinct.
        large = draws.num_slots >= LARGE and self._draws_per_block <= sequence.period
        self._threaded = draws if isinstance(draws, DistinctDraws) and large else None
        # What the slots hold at the start of a block, and its number: one pair, so that an interrupt cannot separate
        # them.
        self._found: tuple[IntegerArray, int] | None = None

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in, and leave the pool at its end."""
        block = step // self._draws.steps_per_block
        # For the first block only the slots drawn matter, so a large pool is not made yet.
        is_made = block > 0 or self._draws.num_slots < LARGE
        positions = self._move_to(block) if is_made else None
        slots, refill = self._draws.block(block), self._refill(block)
        shape, slots = slots.shape, slots.ravel()
        if positions is None:
            drawn, slots = np.unique(slots, return_inverse=True)
            positions = (drawn % self._sequence.period).astype(self._position_type)
        found = np.empty(self._draws_per_block, dtype=self._position_type)
        self._found = None  # an interrupt in the loop must not leave a half-drawn pool
        draws_per_run = self._steps_per_run * self._draws.batch_size
        for start in range(0, self._draws_per_block, draws_per_run):
            run = slice(start, start + draws_per_run)
            self._draw_run(positions, slots[run], refill[run], found[run])
        if is_made:
            self._found = (positions, block + 1)
        return block * self._draws.steps_per_block, self._sequence.at(found.reshape(shape))

    def _choose_steps_per_run(self) -> int:
        """Return how many steps a run has: the steps that are drawn together.

        A run costs some 20 us, and about 40 ns for each slot that it draws twice; R draws from M slots have R^2 / 2M of
        these. So a draw costs least at R = 32 sqrt(M). A single step draws no slot twice and costs 3 us, so steps that
        are large, or few, are better drawn one by one. The refills of a run must be distinct.
        """
        steps = 32 * math.sqrt(self._draws.num_slots) / self._draws.batch_size
        if steps < 12 or self._draws.batch_size >= 512:
            return 1
        runs = max(1, round(self._draws.steps_per_block / steps))  # of equal length
        return max(1, min(-(-self._draws.steps_per_block // runs), self._sequence.period // self._draws.batch_size))

    def positions_before(self, step: int) -> IntegerArray:
        """Return what every slot holds just before `step` draws, as positions modulo the sequence's period."""
        block, rest = divmod(step, self._draws.steps_per_block)
        positions = self._move_to(block).copy()
        count = rest * self._draws.batch_size
        scatter.assign_in_turn(positions, self._draws.block(block).ravel()[:count], self._refill(block)[:count])
        return positions

    def _refill(self, block: int) -> IntegerArray:
        """Return the positions that refill the slots drawn in `block`, in order."""
        length = self._sequence.period
        start = (self._draws.num_slots + block * self._draws_per_block) % length  # in unbounded Python ints
        if start + self._draws_per_block <= length:
            return self._block_offsets + self._position_type(start)
        return ((self._block_offsets.astype(np.int64) + start) % length).astype(self._position_type)

    def warm(self, step: int, group: SearchGroup = ONE_PROCESS) -> None:
        """Move to `step` now, possibly together with other processes, rather than at the next batch."""
        self._move_to(step // self._draws.steps_per_block, group)

    def _move_to(self, block: int, group: SearchGroup = ONE_PROCESS) -> IntegerArray:
        """Move the pool to the start of `block` in the fastest way, and return what its slots hold."""
        slots = self._draws.num_slots
        # M (ln M + 3) draws leave e^-3 slots undrawn on average (the coupon collector's problem): nearly always none.
        # Several threads find the place in a quarter of the time.
        epochs = (math.log(slots) + 3) / (4 if self._threaded else 1)
        enough = math.ceil(slots * epochs / self._draws_per_block)
        found, self._found = self._found, None  # an interrupt must not leave a half-moved pool
        if found is None or not 0 <= block - found[1] <= enough:
            near = block <= enough
            found = (self._initial(), 0) if near else (self._find_positions(block, block - enough, group), block)
        positions, at = found
        replay(self._draws, positions, self._refill, at, block)
        self._found = (positions, block)
        return positions

    def _initial(self) -> IntegerArray:
        positions = np.arange(self._draws.num_slots, dtype=self._position_type)
        if self._draws.num_slots > self._sequence.period:
            positions %= self._sequence.period
        return positions

    def _find_positions(self, block: int, start: int, group: SearchGroup = ONE_PROCESS) -> IntegerArray:
        """Return what the slots hold at the start of `block`, from the last draw of each slot.

        Replay the blocks from `start` on, which nearly always draw all slots. A replay only writes to the pool, so it
        is several times as fast as a backward search, which checks for each draw whether its slot is still wanted. Then
        search backwards for the few slots that the replay missed.
        """
        if self._threaded:
            positions = last_draws(self._threaded, self._refill, block, self._position_type, group)
            start = 0
        else:
            positions = np.full(self._draws.num_slots, -1, dtype=self._position_type)
            replay(self._draws, positions, self._refill, start, block)
        wanted = np.flatnonzero(positions < 0)
        while wanted.size and start > 0:
            start -= 1
            slots = self._draws.block(start).ravel()
            hits = np.flatnonzero(np.isin(slots, wanted))
            scatter.assign_in_turn(positions, slots[hits], self._refill(start)[hits])
            wanted = wanted[positions[wanted] < 0]
        positions[wanted] = wanted % self._sequence.period  # never drawn: their contents at the start
        return positions

    def _draw_run(self, positions: IntegerArray, slots: Int64Array, refill: IntegerArray, found: IntegerArray) -> None:
        """Draw the slots of a run of steps and refill them; write the contents that each draw finds to `found`.

        One gather and one scatter, in which the last refill of a slot stays, are right for all slots that the run draws
        once. If a slot is drawn again, the later draw must find the refill of the earlier one.
        """
        positions.take(slots, out=found, mode="clip")  # in range already; "raise" would copy `out`
        if self._steps_per_run == 1:
            positions[slots] = refill  # the slots of one step are distinct
            return
        scatter.assign_in_turn(positions, slots, refill)
        left = positions.take(slots)
        earlier = (left != refill).nonzero()[0]  # draws whose slot is drawn again: a later refill is left
        if not earlier.size:
            return
        # Sorted by slot and time, each of these is followed by the next draw of its slot. The last draw of a slot is
        # not among them, but its refill identifies it, since refills are consecutive positions.
        bits = len(slots).bit_length()
        by_slot = (slots[earlier] << bits) | earlier
        by_slot.sort()
        earlier = by_slot & ((1 << bits) - 1)
        by_slot >>= bits
        later = left[earlier].astype(np.int64) - int(refill[0])
        later[later < 0] += self._sequence.period
        same = (by_slot[1:] == by_slot[:-1]).nonzero()[0]
        later[same] = earlier[same + 1]
        found[later] = refill[earlier]
