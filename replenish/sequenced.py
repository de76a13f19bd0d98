"""Sequenced-replacement sampling (the paper's section 2), fast: no Python loop over samples."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DistinctDraws, Int64Array
from replenish.order import Cursor, CursorOrder
from replenish.sequences import IntegerArray, ListedSequence, Sequence, make_sequence


class SequencedReplacement(CursorOrder):
    """Sequenced-replacement sampling, SRS: a random draw from a pool, an orderly refill.

    A fixed sequence of sample indices repeats for ever. A pool of `pool_size` slots starts with its first
    positions. Every step draws `batch_size` distinct slots, uniformly, by a choice that depends on the seed
    and the step alone; their contents are the batch; then the slots drawn are refilled, not with what was
    drawn, but with the next positions of the sequence (the paper's section 2 and figure 1). Two slots may
    hold the same sample, so a batch may hold a sample twice: that is the method, not a fault.

    Steps in a row cost O(batch_size) each. A jump to any step costs about M (ln M + 3) draws with M the
    pool size, however far it goes. The pool takes 4 bytes a slot (8 from 2**31 positions on).

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many are drawn at a step, over all processes: B.
        seed: Chooses the draws and the shuffled sequence; in [0, 2**63).
        pool_size: The number M of slots, at least `batch_size`. None means N, the paper's; fewer make a
            bounded pool, kN a pool of k copies, closer to independent draws.
        sequence: `"shuffled"`, a fixed permutation drawn from the seed; `"identity"`, the letter of the paper,
            which makes the rate of each class swing once an epoch if the data are sorted by class; or an array
            of indices, in which some may repeat (see `weighted_sequence`) or be missing (a subset).

    Example:
        >>> order = SequencedReplacement(num_samples=5, batch_size=2, sequence="identity")
        >>> [batch.tolist() for batch in order.batches(stop=3)]
        [[0, 3], [1, 0], [2, 4]]
        >>> order.batch(2).tolist()
        [2, 4]
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        seed: int = 0,
        pool_size: int | None = None,
        sequence: str | npt.ArrayLike = "shuffled",
    ) -> None:
        super().__init__(num_samples, batch_size, seed)
        if pool_size is None:
            pool_size = self.num_samples
        self.pool_size = checks.integer("pool_size", pool_size, minimum=1, maximum=2**40)
        if self.batch_size > self.pool_size:
            raise ValueError(
                f"batch_size should be at most pool_size, since a batch is drawn from distinct slots, but got "
                f"batch_size={self.batch_size} and pool_size={self.pool_size}; take a smaller batch_size or a "
                f"larger pool_size"
            )
        self._sequence = make_sequence(sequence, self.num_samples, self.seed)

    def _arguments(self) -> dict[str, Any]:
        sequence = self._sequence.indices if isinstance(self._sequence, ListedSequence) else self._sequence.name
        return {**super()._arguments(), "pool_size": self.pool_size, "sequence": sequence}

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that name the order completely; an array is named by its SHA-256."""
        return {**super().config(), "sequence": self._sequence.name, "sequence_length": self._sequence.length}

    def samples_in_pool(self, step: int) -> Int64Array:
        """Return the sample that each slot of the pool holds just before `step` draws."""
        return self._sequence.at(self.cursor().positions_before(checks.step(step)))

    def cursor(self) -> Pool:
        """Return a new cursor at the start: a pool."""
        return Pool(DistinctDraws(self.pool_size, self.batch_size, self.seed), self._sequence)


class SlotDraws(Protocol):
    """What the pool needs of its draws; a test may force them."""

    num_slots: int
    batch_size: int
    steps_per_block: int

    def block(self, index: int) -> Int64Array:
        """Return the slots of block `index`: (steps_per_block, batch_size), distinct within a row."""
        ...


class Pool(Cursor):
    """The pool of slots at the start of some block of steps, and the way from one block to another.

    The slots drawn do not depend on what they hold, and draw number d (counted over all steps) refills its
    slot with position M + d. So a slot holds M + (the number of its last draw), or its own number before the
    first. Everything below is bookkeeping of that one fact. Positions are kept modulo the sequence's length.
    """

    def __init__(self, draws: SlotDraws, sequence: Sequence) -> None:
        self._draws = draws
        self._sequence = sequence
        self._draws_per_block = draws.steps_per_block * draws.batch_size
        self._position_type: type[np.signedinteger[Any]] = np.int32 if sequence.length <= 2**31 else np.int64
        self._block_offsets: IntegerArray = np.arange(self._draws_per_block, dtype=self._position_type)
        self._steps_per_run = self._choose_steps_per_run()
        self._positions: IntegerArray | None = None
        self._block = 0

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in, and leave the pool behind it."""
        block = step // self._draws.steps_per_block
        positions = self._moved_to(block)
        slots, refill = self._draws.block(block), self._refill(block)
        shape, slots = slots.shape, slots.ravel()
        found = np.empty(self._draws_per_block, dtype=self._position_type)
        self._positions = None  # an interrupt in the loop must not leave a half-drawn pool
        draws_per_run = self._steps_per_run * self._draws.batch_size
        for start in range(0, self._draws_per_block, draws_per_run):
            run = slice(start, start + draws_per_run)
            self._draw_run(positions, slots[run], refill[run], found[run])
        self._positions, self._block = positions, block + 1
        return block * self._draws.steps_per_block, self._sequence.at(found.reshape(shape))

    def _choose_steps_per_run(self) -> int:
        """Return how many steps are drawn in one go.

        A run has a fixed cost of some 20 us, and one of about 40 ns for each slot drawn twice, of which R draws
        from M slots have R^2 / 2M: least at R = 32 sqrt(M). One step alone has no such slots to look for and
        costs 3 us, so large steps, or few, are better taken one by one. The refills of a run must be distinct.
        """
        steps = 32 * math.sqrt(self._draws.num_slots) / self._draws.batch_size
        if steps < 12 or self._draws.batch_size >= 512:
            return 1
        runs = max(1, round(self._draws.steps_per_block / steps))  # of equal length
        return max(1, min(-(-self._draws.steps_per_block // runs), self._sequence.length // self._draws.batch_size))

    def positions_before(self, step: int) -> IntegerArray:
        """Return what every slot holds just before `step` draws, as positions modulo the sequence's length."""
        block, rest = divmod(step, self._draws.steps_per_block)
        positions = self._moved_to(block).copy()
        count = rest * self._draws.batch_size
        positions[self._draws.block(block).ravel()[:count]] = self._refill(block)[:count]
        return positions

    def _refill(self, block: int) -> IntegerArray:
        """Return the positions that refill the slots drawn in `block`, in order."""
        length = self._sequence.length
        start = (self._draws.num_slots + block * self._draws_per_block) % length  # in unbounded Python ints
        if start + self._draws_per_block <= length:
            return self._block_offsets + self._position_type(start)
        return ((self._block_offsets.astype(np.int64) + start) % length).astype(self._position_type)

    def _moved_to(self, block: int) -> IntegerArray:
        """Bring the pool to the start of `block`, by the shortest way, and return it."""
        slots = self._draws.num_slots
        # M (ln M + 3) draws leave e^-3 slots undrawn on average (the coupon collector's problem): nearly always none.
        enough = math.ceil(slots * (math.log(slots) + 3) / self._draws_per_block)
        positions, at = self._positions, self._block
        self._positions = None  # an interrupt must not leave a pool on its way
        if positions is None or at > block or block - at > enough:
            if block <= enough:
                positions, at = self._at_the_start(), 0
            else:
                positions, at = self._found_anew(block, block - enough), block
        self._replay(positions, at, block)
        self._positions, self._block = positions, block
        return positions

    def _at_the_start(self) -> IntegerArray:
        positions = np.arange(self._draws.num_slots, dtype=self._position_type)
        if self._draws.num_slots > self._sequence.length:
            positions %= self._sequence.length
        return positions

    def _found_anew(self, block: int, start: int) -> IntegerArray:
        """Find the last draw of every slot before `block`; those from `start` on have nearly always drawn all slots.

        A replay writes and never reads the pool, so it is several times as fast as a search that goes back
        and looks at each draw whether its slot is still wanted. That is left for the few slots not drawn since.
        """
        positions = np.full(self._draws.num_slots, -1, dtype=self._position_type)
        self._replay(positions, start, block)
        wanted = np.flatnonzero(positions < 0)
        while wanted.size and start > 0:
            start -= 1
            slots = self._draws.block(start).ravel()
            hits = np.flatnonzero(np.isin(slots, wanted))
            positions[slots[hits]] = self._refill(start)[hits]
            wanted = wanted[positions[wanted] < 0]
        positions[wanted] = wanted % self._sequence.length  # never drawn: what they held at the start
        return positions

    def _replay(self, positions: IntegerArray, start: int, stop: int) -> None:
        """Refill the slots that the blocks from `start` to `stop` draw."""
        for block in range(start, stop):
            # The last write wins where a slot was drawn more than once: numpy's rule for repeated indices.
            positions[self._draws.block(block).ravel()] = self._refill(block)

    def _draw_run(self, positions: IntegerArray, slots: Int64Array, refill: IntegerArray, found: IntegerArray) -> None:
        """Draw the slots of a run of steps and refill them; write to `found` what each draw found.

        One gather and one scatter, in which the last write wins, are right for all slots that the run
        draws once. Where a slot is drawn again, the later draw must find what the earlier one put there.
        """
        positions.take(slots, out=found, mode="clip")  # in range already; "raise" would copy `out`
        positions[slots] = refill
        if self._steps_per_run == 1:
            return
        left = positions.take(slots)
        earlier = (left != refill).nonzero()[0]  # draws whose slot is drawn again: another's refill is left
        if not earlier.size:
            return
        # Sorted by slot and time, each is followed by the next draw of its slot; the last draw of a slot
        # is not among them, but is known by its refill, for refills are consecutive positions.
        bits = len(slots).bit_length()
        by_slot = (slots[earlier] << bits) | earlier
        by_slot.sort()
        earlier = by_slot & ((1 << bits) - 1)
        by_slot >>= bits
        later = left[earlier].astype(np.int64) - int(refill[0])
        later[later < 0] += self._sequence.length
        same = (by_slot[1:] == by_slot[:-1]).nonzero()[0]
        later[same] = earlier[same + 1]
        found[later] = refill[earlier]
