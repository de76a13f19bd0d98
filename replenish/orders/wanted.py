"""Slots that are looked for in blocks of draws, by ways that grow cheaper as fewer of them are left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish.draws import DistinctDraws, Int64Array, UInt64Array
from replenish.orders.team import Hit

Booleans = npt.NDArray[np.bool_]

# From so few of all slots on, a table of stretches of slots is looked at first: most stretches have none.
FEW = 64
# When one block in so many draws a slot that is still wanted, it is cheaper to look for them in its random words alone.
SELDOM = 4
# How many stretches for every slot that is wanted, and the most: a table that fits the caches.
STRETCHES_PER_SLOT = 64
MOST_STRETCH_BITS = 23
# Buckets of half words, which are what slots are computed from; a pool of 2**20 slots or more has two for each at most,
# and a table of so many stays in the nearest caches.
BUCKET_BITS = 18


class WantedSlots:
    """Which slots are still wanted of the `draws`; what says so for each slot is changed as they are found."""

    def __init__(self, is_wanted: Booleans, draws: DistinctDraws) -> None:
        self._is_wanted = is_wanted
        self._draws_per_block = draws.steps_per_block * draws.batch_size
        self._one_step = draws.steps_per_block == 1
        self.left = int(np.count_nonzero(is_wanted))
        self._slots: Int64Array | None = None  # listed as soon as they are few
        self._look()

    @property
    def are_few(self) -> bool:
        """Whether few of the slots are left, and so few that half of the largest table's stretches have none."""
        return FEW * self.left < len(self._is_wanted) and 2 * self.left <= 1 << MOST_STRETCH_BITS

    def take_off(self, slots: list[Int64Array]) -> None:
        """These have been found."""
        for each in slots:
            new = each[self._is_wanted.take(each)]
            self.left -= len(new) if self._one_step else len(np.unique(new))  # steps of a block may share slots
            self._is_wanted[new] = False
        self._look()

    def _look(self) -> None:
        """Choose how to look for what is left."""
        self._stretches: Booleans | None = None
        self._buckets: Booleans | None = None
        count = len(self._is_wanted)
        if not self.are_few:
            return
        if self._slots is None:
            self._slots = np.flatnonzero(self._is_wanted)
        self._slots = slots = self._slots[self._is_wanted.take(self._slots)]
        # Above 2**32, slots are not made of half words.
        if SELDOM * self.left * self._draws_per_block < count <= 2**32:
            self._buckets = _buckets(slots, count)
            return
        bits = min(MOST_STRETCH_BITS, (STRETCHES_PER_SLOT * self.left).bit_length())
        self._shift = max(0, (count - 1).bit_length() - bits)
        self._stretches = np.zeros(((count - 1) >> self._shift) + 1, dtype=np.bool_)
        self._stretches[slots >> self._shift] = True

    def hits(self, draws: DistinctDraws, blocks: range) -> list[Hit]:
        """Return the draws of these blocks that draw a wanted slot."""
        found = (
            self._hit(draws, block)
            for block in blocks
            if self._buckets is None or self._may_come_of(draws.words_of(block))
        )
        return [hit for hit in found if hit.slots.size]

    def _hit(self, draws: DistinctDraws, block: int) -> Hit:
        if (hit := self._hit_as_drawn(draws, block)) is not None:
            return hit
        slots = draws.block(block).ravel()
        places = self._places(slots)
        return Hit(block, places, slots[places])

    def _hit_as_drawn(self, draws: DistinctDraws, block: int) -> Hit | None:
        """Return the hits of a block of one step without looking for its repeats, or None if they may matter.

        The first draw of a slot in a step stands. Repeats become other slots, of the spare draws: if none of these is
        wanted, nor of the words after them, it does not matter which draws are repeats.
        """
        in_turn = self._one_step and 2 * draws.batch_size <= draws.num_slots  # not by a permutation of all slots
        if not in_turn or self.left * draws.num_after_draws > len(self._is_wanted) // 2:  # they likely do
            return None
        slots, spare = draws.as_drawn(block)
        if self._is_wanted.take(spare).any() or self._may_come_of(draws.next_words()):
            return None
        places = self._places(slots)
        _, first = np.unique(slots[places], return_index=True)
        places = places[np.sort(first)]
        return Hit(block, places, slots[places])

    def _places(self, slots: Int64Array) -> Int64Array:
        """Return the places at which wanted slots stand."""
        if self._stretches is None:
            return self._is_wanted.take(slots).nonzero()[0]
        near = self._stretches.take(slots >> self._shift).nonzero()[0]
        return near[self._is_wanted.take(slots[near])]

    def _may_come_of(self, words: UInt64Array) -> bool:
        """Say whether words can give one of the wanted slots."""
        halves, count = words.view(np.uint32), len(self._is_wanted)
        if self._buckets is not None:
            halves = halves[self._buckets.take(halves >> np.uint32(32 - BUCKET_BITS))]
        if count > 2**32 or not halves.size:
            return bool(halves.size)
        slots = (halves.astype(np.uint64) * np.uint64(count) >> np.uint64(32)).astype(np.int64)
        return bool(self._is_wanted.take(slots).any())


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
