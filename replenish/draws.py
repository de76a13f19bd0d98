"""Random draws as pure functions of (seed, purpose, index): the frozen stream "v1".

Everything random in the library comes from here. The raw words are those of numpy's Philox *bit*
generator, whose stream numpy guarantees; nothing uses `numpy.random.Generator`, whose methods may
change. The seed and the index (a block of steps, an epoch) stand in Philox's key, the purpose in the
top word of its counter: no two (seed, purpose, index) share a word, and seed 0 at index 1 has nothing
to do with seed 1 at index 0.

What is written here is a promise: a change of any draw needs a new `STREAM` name.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import numpy.typing as npt

STREAM = "v1"

# About how many draws share one key. Large enough to hide the cost of a key, small enough for the cache.
DRAWS_PER_BLOCK = 16384

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]


class Purpose(enum.IntEnum):
    """What random words are for; the numbers are part of stream v1."""

    SLOTS = 0  # which slots a step draws
    SEQUENCE = 1  # the fixed permutation of `sequence="shuffled"`
    EPOCH = 2  # the permutation of one epoch
    INDEPENDENT = 3  # draws with immediate replacement


class KeyedWords:
    """Random words under a key that can be moved: `at(index)` starts the words of that index anew."""

    def __init__(self, seed: int, purpose: Purpose) -> None:
        self._generator = np.random.Philox(
            key=np.array([seed, 0], dtype=np.uint64), counter=np.array([0, 0, 0, purpose], dtype=np.uint64)
        )
        # Setting the state of one generator is eight times cheaper than building another.
        self._state = self._generator.state
        self._key = self._state["state"]["key"]

    def at(self, index: int) -> KeyedWords:
        """Go to the first word of `index`."""
        self._key[1] = index
        self._generator.state = self._state
        return self

    def words(self, count: int) -> UInt64Array:
        """Return the next `count` words of 64 bits."""
        return self._generator.random_raw(count)

    def below(self, bound: int, count: int) -> npt.NDArray[Any]:
        """Return the next `count` integers, independent and exactly uniform on [0, bound).

        Up to 2**32 a word gives two integers by Lemire's multiplication, the high half of
        `half_word * bound`, where those whose low half is under 2**32 mod bound are rejected: every value
        then keeps the same number of half words. Above, the top bits of a word are taken and values
        outside the range rejected. What is missing after the rejection is drawn from the words that follow.
        """
        if bound <= 2**32:
            # An explicit byte order, so that halves come in the same order on every machine.
            halves = self.words((count + 1) // 2).astype("<u8", copy=False).view("<u4")[:count]
            product = np.multiply(halves, np.uint64(bound), dtype=np.uint64)
            parts = product.astype("<u8", copy=False).view("<u4")
            values, accepted = parts[1::2], None
            if threshold := 2**32 % bound:
                rejected = parts[0::2] < np.uint32(threshold)
                accepted = ~rejected if rejected.any() else None
        else:
            bits = (bound - 1).bit_length()
            values = self.words(count) >> np.uint64(64 - bits)
            accepted = values < np.uint64(bound)
        if accepted is None:
            return values
        values = values[accepted]
        if missing := count - len(values):
            values = np.concatenate([values, self.below(bound, missing)])
        return values

    def permutations(self, count: int, size: int) -> Int64Array:
        """Return `count` permutations of range(size), one a row, independent and exactly uniform.

        A row is the order that sorts `size` random words. Rows with two equal words would favour some
        orders, so they are drawn again: by symmetry every order is then equally likely.
        """
        words = self.words(count * size).reshape(count, size)
        order = np.argsort(words, axis=1)
        in_order = np.take_along_axis(words, order, axis=1)
        tied = np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1))
        if tied.size:
            order[tied] = self.permutations(tied.size, size)
        return order.astype(np.int64, copy=False)


class DistinctDraws:
    """`batch_size` distinct slots of `num_slots` for every step, exactly uniform, a block of steps at once.

    Up to half of the slots, a step's slots are drawn independently; one that equals an earlier slot of its
    step is drawn again until it equals none. The procedure looks only at which entries are equal, so
    renaming the slots of a step renames its result: all ordered choices of distinct slots are equally
    likely. Above one half, the step takes the head of a random permutation of all slots, so that a batch
    near the size of the pool costs no more than sorting it.

    Args:
        num_slots: How many slots there are.
        batch_size: How many distinct slots a step draws.
        seed: The seed of the stream.

    Example:
        >>> DistinctDraws(num_slots=5, batch_size=2, seed=0).block(0).shape
        (20, 2)
    """

    def __init__(self, num_slots: int, batch_size: int, seed: int) -> None:
        self.num_slots = num_slots
        self.batch_size = batch_size
        self.steps_per_block = steps_per_block(num_slots, batch_size)
        self._words = KeyedWords(seed, Purpose.SLOTS)
        # A slot and its place in the batch are packed into one integer to be sorted together.
        self._place_bits = (batch_size - 1).bit_length()
        self._slot_bits = (num_slots - 1).bit_length()
        self._packed = np.uint32 if self._slot_bits + self._place_bits <= 32 else np.uint64
        self._places = np.arange(batch_size, dtype=self._packed)

    def block(self, index: int) -> Int64Array:
        """Return the slots of block `index`: an array of (steps_per_block, batch_size)."""
        words, shape = self._words.at(index), (self.steps_per_block, self.batch_size)
        if 2 * self.batch_size > self.num_slots:
            return words.permutations(shape[0], self.num_slots)[:, : self.batch_size]
        slots = words.below(self.num_slots, shape[0] * shape[1]).reshape(shape).astype(np.int64)
        if self.batch_size > 1:
            self._draw_repeats_again(slots)
        return slots

    def _draw_repeats_again(self, slots: Int64Array) -> None:
        """Give every entry that equals an earlier one of its step a slot that the step has not."""
        packed = np.left_shift(slots, self._place_bits, dtype=self._packed, casting="unsafe")
        packed |= self._places
        packed.sort(axis=1)
        # Neighbours that differ in the bits of the place alone are the same slot.
        same = np.flatnonzero((packed[:, 1:] ^ packed[:, :-1]) < self._packed(1 << self._place_bits))
        if not same.size:
            return
        rows, ranks = np.divmod(same, self.batch_size - 1)
        places = packed[rows, ranks + 1].astype(np.int64) & ((1 << self._place_bits) - 1)
        wanting = np.sort(rows * self.batch_size + places)

        # (step, slot) as one integer; the steps concerned, in order, are one sorted list of what is taken.
        rows = wanting // self.batch_size
        steps = np.flatnonzero(np.bincount(rows))
        taken = (packed[steps] >> self._packed(self._place_bits)).astype(np.int64)
        taken = (taken + (steps << self._slot_bits)[:, np.newaxis]).ravel()
        given: Int64Array = np.empty(0, dtype=np.int64)
        while wanting.size:
            drawn = self._words.below(self.num_slots, wanting.size).astype(np.int64)
            keys = drawn + (rows << self._slot_bits)
            near = np.searchsorted(taken, keys)
            near[near == taken.size] = 0
            free = taken[near] != keys
            free[np.delete(np.arange(keys.size), np.unique(keys, return_index=True)[1])] = False
            if given.size:
                free &= ~np.isin(keys, given)
            slots.ravel()[wanting[free]] = drawn[free]
            given = np.concatenate([given, keys[free]])
            wanting, rows = wanting[~free], rows[~free]


def steps_per_block(num_values: int, batch_size: int) -> int:
    """Return how many steps share one key; a part of stream v1.

    A block of a small pool is small, so that one batch of it does not cost thousands of draws.
    """
    return max(1, min(DRAWS_PER_BLOCK, 8 * num_values) // batch_size)
