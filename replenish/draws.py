"""Random draws as pure functions of (seed, purpose, index): the frozen stream "v1".

Everything random in the library comes from here. The raw words are those of numpy's Philox *bit* generator, whose
stream numpy guarantees; nothing uses `numpy.random.Generator`, whose methods may change. Philox's key holds the seed
and the index (of a block of steps, of an epoch), and the top word of its counter holds the purpose. So no two (seed,
purpose, index) share a word, and seed 0 at index 1 is unrelated to seed 1 at index 0.

The draws are frozen: changing any of them needs a new `STREAM` name.
"""

from __future__ import annotations

import enum
import hashlib
import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks

STREAM = "v1"

# About how many draws share one key. Large enough to hide the cost of a key, small enough for the cache.
DRAWS_PER_BLOCK = 16384

# `KeyedWords` keeps memory for up to this many products: 1.5 MB.
_KEPT_PRODUCTS = 2**17
# `CollisionTable` is used from this range and this length of a row on: sorting smaller rows is as fast.
_LEAST_RANGE, _LEAST_ROW = 2**20, 2**12
# It is used up to this many values: more would need a table larger than the caches.
_MOST_VALUES = 2**18
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]


class Purpose(enum.IntEnum):
    """What random words are for; the numbers are part of stream v1."""

    SLOTS = 0  # which slots a step draws
    SEQUENCE = 1  # the fixed permutation of `sequence="shuffled"`
    EPOCH = 2  # the permutation of one epoch
    INDEPENDENT = 3  # draws with immediate replacement
    ROUND = 4  # the permutation of one round of `sequence="reshuffled"`
    POISSON = 5  # how many samples a step of Poisson sampling has, and which
    BINS = 6  # which batch of an epoch a sample falls into
    WEIGHTED = 10  # draws in proportion to weights
    STRATA = 11  # the places of the classes in a stratified batch
    COMPUTED = 13  # the keys of a computed permutation: stream "computed-v1"
    MIXTURE = 14  # the places of the sources in a mixture's batch
    DRAIN = 64  # the order of the last items of a stream
    DERIVED_SEED = 65  # seeds derived from a seed: for parts of a stream, weights, dropout


class KeyedWords:
    """Random words of one seed and purpose; `at(index)` moves to the first word of an index."""

    def __init__(self, seed: int, purpose: int) -> None:
        self._seed, self._purpose = seed, purpose
        self._make_generator()

    def _make_generator(self) -> None:
        self._process = os.getpid()
        self._generator = np.random.Philox(
            key=np.array([self._seed, 0], dtype=np.uint64), counter=np.array([0, 0, 0, self._purpose], dtype=np.uint64)
        )
        # Setting the state of one generator is eight times cheaper than building another.
        self._state = self._generator.state
        self._key = self._state["state"]["key"]
        # Memory in which `below` multiplies: allocating it at every call would cost more than multiplying.
        self._products = np.empty(0, dtype=np.uint64)
        self._low_halves = np.empty(0, dtype=np.uint32)

    def at(self, index: int) -> KeyedWords:
        """Move to the first word of `index`, and return self."""
        if self._process != os.getpid():
            self._make_generator()  # a fork may have copied numpy's lock while another thread held it
        self._key[1] = index
        self._generator.state = self._state
        return self

    def words(self, count: int) -> UInt64Array:
        """Return the next `count` words of 64 bits."""
        return self._generator.random_raw(count)

    def below(self, bound: int, count: int) -> Int64Array:
        """Return the next `count` integers, independent and exactly uniform on [0, bound).

        Up to 2**32, each word gives two integers by Lemire's multiplication: an integer is the high half of
        `half_word * bound`. It is rejected if the low half is under 2**32 mod bound, so that every value keeps the same
        number of half words. The low halves of all words come first, then the high ones. Above 2**32, an integer is the
        top bits of a word, and is rejected if it is outside the range. Rejected integers are drawn again from the words
        that follow.
        """
        if bound <= 2**32:
            words = self.words((count + 1) // 2)
            products, low_halves = self._scratch(2 * len(words))
            np.bitwise_and(words, _LOW_HALF, out=products[: len(words)])
            np.right_shift(words, _HALF, out=products[len(words) :])
            products, low_halves = products[:count], low_halves[:count]
            products *= np.uint64(bound)
            values = (products >> _HALF).view(np.int64)
            np.copyto(low_halves, products, casting="unsafe")  # the cast keeps the low half
            rejected = low_halves < np.uint32(2**32 % bound)
        else:
            values = (self.words(count) >> np.uint64(64 - (bound - 1).bit_length())).view(np.int64)
            rejected = values >= bound
        again = rejected.nonzero()[0]
        if again.size:
            values[again] = self.below(bound, again.size)
        return values

    def _scratch(self, size: int) -> tuple[UInt64Array, npt.NDArray[np.uint32]]:
        """Return memory for `size` products and their low halves; keep it for the next call if it is small."""
        if size <= len(self._products):
            return self._products[:size], self._low_halves[:size]
        products, low_halves = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint32)
        if size <= _KEPT_PRODUCTS:
            self._products, self._low_halves = products, low_halves
        return products, low_halves

    def permutations(self, count: int, size: int) -> Int64Array:
        """Return `count` permutations of range(size), one per row, independent and exactly uniform.

        A row is the order that sorts `size` random words. Rows with two equal words would favour some orders, so they
        are drawn again: by symmetry every order is then equally likely.
        """
        words = self.words(count * size).reshape(count, size)
        order = np.argsort(words, axis=1)
        in_order = np.take_along_axis(words, order, axis=1)
        tied = np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1))
        if tied.size:
            order[tied] = self.permutations(tied.size, size)
        return order.astype(np.int64, copy=False)


def derived_seed(seed: int, *words: int | str) -> int:
    """Return a new seed for the part of a run that `words` name. The library derives seeds in no other way.

    A word is an int in [0, 2**63) or a string. A string counts as 63 bits of its SHA-256 with the top bit set, so that
    it never equals an int. For each word, the next seed comes from the first random word under the key (seed, word). So
    different seeds or words give unrelated seeds, and the order of the words matters.

    Example:
        >>> derived_seed(7, "augmentation", 3) == derived_seed(derived_seed(7, "augmentation"), 3)
        True
    """
    for word in words:
        if isinstance(word, str):
            index = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little") | 1 << 63
        else:
            index = checks.integer("each word", word, minimum=0, maximum=2**63 - 1)
        seed = int(KeyedWords(seed, Purpose.DERIVED_SEED).at(index).words(1)[0]) >> 1
    return seed


class DistinctDraws:
    """`batch_size` distinct slots of `num_slots` for every step, exactly uniform, a block of steps at once.

    If a batch is at most half of the slots, each of its slots is drawn independently, and drawn again as long as it
    equals an earlier one of the step. The procedure depends only on which entries are equal, so renaming the slots
    renames the result: all ordered choices of distinct slots are equally likely. A larger batch is the head of a random
    permutation of all slots, so that it costs no more than sorting them.

    Example:
        >>> DistinctDraws(num_slots=5, batch_size=2, seed=0).block(0).shape
        (24, 2)
    """

    def __init__(self, num_slots: int, batch_size: int, seed: int) -> None:
        self.num_slots = num_slots
        self.batch_size = batch_size
        self.steps_per_block = steps_per_block(num_slots, batch_size)
        self._words = KeyedWords(seed, Purpose.SLOTS)
        # (step, slot, place in the batch) is packed into one integer, for sorting and looking up.
        self._place_bits = (batch_size - 1).bit_length()
        self._step_shift = self._place_bits + (num_slots - 1).bit_length()
        bits = self._step_shift + (self.steps_per_block - 1).bit_length()
        self._packed: type[np.unsignedinteger[Any]] = np.uint32 if bits <= 32 else np.uint64
        steps = np.arange(self.steps_per_block) << self._step_shift
        self._steps_and_places = (steps[:, np.newaxis] + np.arange(batch_size)).astype(self._packed)
        # About K B / 2M of a block's K draws repeat a slot of their step. Twice as many spare draws are made together
        # with the block, which costs less than making them once their number is known.
        self._spare = 16 + self.steps_per_block * batch_size * batch_size // num_slots
        size = self.steps_per_block * batch_size
        self._collisions = (
            CollisionTable(num_slots, size) if CollisionTable.is_faster(num_slots, batch_size, size) else None
        )

    def block(self, index: int) -> Int64Array:
        """Return the slots of block `index`: an array of (steps_per_block, batch_size)."""
        if 2 * self.batch_size > self.num_slots:
            rows = self._words.at(index).permutations(self.steps_per_block, self.num_slots)
            return rows[:, : self.batch_size]
        slots, spare = self.as_drawn(index)
        if self.batch_size > 1:
            self._draw_repeats_again(slots, spare)
        return slots.reshape(self.steps_per_block, self.batch_size)

    def as_drawn(self, index: int) -> tuple[Int64Array, Int64Array]:
        """Return (slots, spare): a block with its repeats, and the draws that replace these.

        Only for batches of at most half of the slots. `pool_search` finds the few repeats that matter without sorting.
        """
        size = self.steps_per_block * self.batch_size
        slots, spare = np.split(self._words.at(index).below(self.num_slots, size + self._spare), [size])
        return slots, spare

    def next_words(self) -> UInt64Array:
        """Return the words that `block` uses after `spare`, and some more; call it right after `as_drawn`."""
        return self._words.words(2 * self._spare + 64)

    @property
    def num_after_draws(self) -> int:
        """The number of draws in `spare` and `next_words()` together."""
        return self._spare + 2 * (2 * self._spare + 64)

    def words_of(self, index: int) -> UInt64Array:
        """Return all words that block `index` uses, and some more, for at most 2**32 slots.

        Rejected half words are drawn again, and so are repeats beyond the spare draws. The margin for these is thirteen
        standard deviations: fewer than one block in 10**30 uses more.
        """
        rejected = (2**32 % self.num_slots) / 2**32
        values = self.steps_per_block * self.batch_size + 2 * self._spare + 100
        halves = (values + 13 * math.sqrt(values * rejected)) / (1 - rejected) + 200
        return self._words.at(index).words(int(halves) // 2)

    def _draw_repeats_again(self, slots: Int64Array, spare: Int64Array) -> None:
        """Replace every entry that equals an earlier one of its step by a slot that the step does not have."""
        taken = self._sorted(slots) if self._collisions is None else None
        repeats = self._repeats(slots, taken)
        assigned = np.empty(0, dtype=self._packed)
        places, values = [], []
        while repeats.size:
            if spare.size < repeats.size:
                spare = np.concatenate([spare, self._words.below(self.num_slots, repeats.size + self._spare)])
            drawn, spare = spare[: repeats.size], spare[repeats.size :]
            steps = repeats // self.batch_size
            keys = ((steps << self._step_shift) + (drawn << self._place_bits)).astype(self._packed)
            if taken is not None:
                is_drawn = self._are_in(taken, keys)
            else:
                assert self._collisions is not None
                is_drawn = self._collisions.are_among(drawn, steps, slots.reshape(-1, self.batch_size))
            free = ~(_repeated(keys) | is_drawn | self._are_in(assigned, keys))
            places.append(repeats[free])
            values.append(drawn[free])
            repeats = repeats[~free]
            if repeats.size:
                assigned = np.concatenate([assigned, keys[free]])
                assigned.sort()
        if places:
            slots[np.concatenate(places)] = np.concatenate(values)

    def _sorted(self, slots: Int64Array) -> npt.NDArray[Any]:
        """Return step, slot and place of every draw, sorted."""
        packed = np.left_shift(slots, self._place_bits, dtype=self._packed, casting="unsafe")
        packed = packed.reshape(self._steps_and_places.shape)
        packed += self._steps_and_places
        packed.sort(axis=1)
        return packed.ravel()  # sorted as a whole, since the step is in the highest bits

    def _repeats(self, slots: Int64Array, taken: npt.NDArray[Any] | None) -> Int64Array:
        """Return the places in the block whose slot equals an earlier one of its step, in ascending order."""
        if taken is None:
            assert self._collisions is not None
            # Only these few can equal another entry.
            near = self._collisions.sharing(slots)
            taken = (slots[near] << self._place_bits).astype(self._packed)
            taken += self._steps_and_places.ravel()[near]
            taken.sort()
        # Neighbours that differ only in the bits of the place are the same slot of the same step. Equal neighbours are
        # one draw, listed twice. They are left out: 0 - 1 wraps to the largest number.
        differing = (taken[1:] ^ taken[:-1]) - self._packed(1)
        equal = (differing < self._packed((1 << self._place_bits) - 1)).nonzero()[0]
        later = taken[equal + 1].astype(np.int64)
        places = (later >> self._step_shift) * self.batch_size + (later & ((1 << self._place_bits) - 1))
        places.sort()
        return places

    def _are_in(self, taken: npt.NDArray[Any], keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return for each key whether `taken`, which is sorted, has its step and slot."""
        if not taken.size:
            return np.zeros(keys.size, dtype=np.bool_)
        # A key has place 0, so the first entry that is not less is the one with its step and slot, if there is one.
        near = np.minimum(taken.searchsorted(keys), taken.size - 1)
        return (taken[near] ^ keys) < self._packed(1 << self._place_bits)


class CollisionTable:
    """Finds equal entries among many without sorting them, by a table small enough for the cache.

    It has a place for every range of neighbouring values. Every entry writes its number at the place of its value, then
    reads that place. If it reads another number, the two entries share the place and may be equal. Entries that share
    no place equal no other. It does not matter which of several numbers stays, or what earlier calls left, so the table
    is never cleared.

    Args:
        bound: The entries are in [0, bound).
        size: The number of entries at a time.

    Example:
        >>> table = CollisionTable(2**30, 5)
        >>> sorted(set(table.sharing(np.array([7, 2**29, 2**24, 7, 2**25])).tolist()))
        [0, 3]
    """

    def __init__(self, bound: int, size: int) -> None:
        # 32 places per entry, so that one in 64 shares its place.
        bits = min((bound - 1).bit_length(), (size - 1).bit_length() + 5)
        self._shift = (bound - 1).bit_length() - bits
        number: type[np.unsignedinteger[Any]] = np.uint16 if size <= 2**16 else np.uint32
        self._table = np.zeros(1 << bits, dtype=number)
        self._numbers = np.arange(size).astype(number)
        self._places = np.empty(size, dtype=np.int64)
        self._found = np.empty(size, dtype=number)

    @staticmethod
    def is_faster(bound: int, row: int, size: int) -> bool:
        """Return whether the table is faster than sorting, for `size` entries in rows of length `row`."""
        return bound >= _LEAST_RANGE and 2 * size <= bound and row >= _LEAST_ROW and size <= _MOST_VALUES

    def sharing(self, values: Int64Array) -> Int64Array:
        """Return the numbers of all entries that share a place with another, in any order, some more than once."""
        np.right_shift(values, self._shift, out=self._places)
        self._table[self._places] = self._numbers
        self._table.take(self._places, out=self._found, mode="clip")  # in range already; "raise" would copy `out`
        others = (self._found != self._numbers).nonzero()[0]
        return np.concatenate([others, self._found[others].astype(np.int64)])

    def are_among(self, wanted: Int64Array, rows: Int64Array, values: Int64Array) -> npt.NDArray[np.bool_]:
        """Return for each wanted value whether its row of `values` has it; call `sharing(values)` before."""
        places = wanted >> self._shift
        near = values.ravel()[self._table[places].astype(np.int64)]
        # For most of them, no entry is at their place.
        found = near >> self._shift == places
        for number in found.nonzero()[0].tolist():
            found[number] = (values[rows[number]] == wanted[number]).any()
        return found


def _repeated(keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries equal an earlier one."""
    repeated = np.zeros(keys.size, dtype=np.bool_)
    if len(set(keys.tolist())) == keys.size:  # nearly always, and cheaper to check than to sort
        return repeated
    order = keys.argsort(kind="stable")
    in_order = keys[order]
    repeated[order[1:][in_order[1:] == in_order[:-1]]] = True
    return repeated


def steps_per_block(num_values: int, batch_size: int) -> int:
    """Return the number of steps that share one key; a part of stream v1.

    An epoch of num_values / batch_size steps is divided into equal blocks of about `DRAWS_PER_BLOCK` draws, so that
    drawing one epoch draws little of the next. For few values a block is several epochs, at most eight, so that one
    batch of a small pool does not cost thousands of draws.
    """
    epoch = -(-num_values // batch_size)
    if num_values < DRAWS_PER_BLOCK:
        return epoch * min(8, DRAWS_PER_BLOCK // num_values)
    return -(-epoch // round(num_values / DRAWS_PER_BLOCK))
