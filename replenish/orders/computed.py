"""Permutations of any size that are computed, place by place, rather than stored: the stream "computed-v1"."""

from __future__ import annotations

import numpy as np

from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose, UInt64Array

STREAM = "computed-v1"

# Up to this size a permutation is exactly uniform, made by sorting random words, and several rounds share one key.
SORTED_UP_TO = 4096
_ROUNDS = 6
_KEYS = 2 * _ROUNDS
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_MIX = np.uint64(0x94D049BB133111EB)  # the last factor of splitmix64
_HALF = np.uint64(32)


class ComputedPermutations:
    """A permutation for each row of keys, with sizes from `SORTED_UP_TO` + 1 to 2**62.

    A place is written as (high, low), low in [0, 2**bits) and high in [0, rows), with rows * 2**bits just over the
    size. Six rounds in turn add to one half a keyed hash of the other: a Feistel network. A result outside the range
    is permuted again. Each round can be undone, so the whole is a bijection.

    Args:
        sizes: The size of each permutation.
        keys: 12 random words per permutation, one row each.

    Example:
        >>> words = KeyedWords(0, Purpose.COMPUTED).at(0)
        >>> one = ComputedPermutations([5000], words.words(12).reshape(1, 12))
        >>> np.sort(one.at(np.arange(5000))).tolist() == list(range(5000))
        True
    """

    def __init__(self, sizes: list[int] | Int64Array, keys: UInt64Array) -> None:
        self._sizes = np.asarray(sizes, dtype=np.uint64)
        self._bits = np.array([int(size).bit_length() // 2 for size in sizes], dtype=np.uint64)
        self._columns = np.uint64(1) << self._bits
        self._rows = (self._sizes + self._columns - np.uint64(1)) >> self._bits
        self._keys = keys.T.copy()
        self._keys[1::2] |= np.uint64(1)  # factors are odd

    def at(self, places: Int64Array, which: Int64Array | None = None) -> Int64Array:
        """Return the samples at `places` of the permutations with the numbers `which`, or of the first permutation."""
        bits, rows, columns, sizes = (_of(each, which) for each in (self._bits, self._rows, self._columns, self._sizes))
        halves = places.view(np.uint64)
        high, low = halves >> bits, halves & (columns - np.uint64(1))
        hashed, spare = np.empty_like(high), np.empty_like(high)
        for number in range(_ROUNDS):
            if number % 2 == 0:
                high += self._hash(number, which, low, rows, hashed, spare)
                np.minimum(high, np.subtract(high, rows, out=spare), out=high)  # modulo rows: below 0 wraps around
            else:
                low += self._hash(number, which, high, columns, hashed, spare)
                low &= columns - np.uint64(1)
        high <<= bits
        high |= low
        samples = high.view(np.int64)
        outside = (high >= sizes).nonzero()[0]
        if outside.size:
            samples[outside] = self.at(samples[outside], None if which is None else which[outside])
        return samples

    def _hash(
        self,
        number: int,
        which: Int64Array | None,
        half: UInt64Array,
        bound: UInt64Array,
        hashed: UInt64Array,
        spare: UInt64Array,
    ) -> UInt64Array:
        """Return a hash of `half` in [0, bound), by the keys of round `number`; `hashed` and `spare` are buffers."""
        np.add(half, _of(self._keys[2 * number], which), out=hashed)
        hashed *= _GOLDEN
        np.right_shift(hashed, _HALF, out=spare)
        hashed ^= spare
        hashed *= _of(self._keys[2 * number + 1], which)
        np.right_shift(hashed, _HALF, out=spare)
        hashed ^= spare
        hashed *= _MIX
        hashed >>= _HALF
        hashed *= bound
        hashed >>= _HALF
        return hashed


def _of(rows: UInt64Array, which: Int64Array | None) -> UInt64Array:
    first: UInt64Array = rows[0]
    return first if which is None else rows.take(which)


class Rounds:
    """An endless sequence of rounds, each a new permutation of all samples, addressed by place.

    Up to `SORTED_UP_TO` samples, several rounds make a stretch with one key, whose permutations are sorted random
    words. Above, a stretch is one round, and its permutation is computed.

    Example:
        >>> rounds = Rounds(5, seed=0)
        >>> sorted(rounds.of_stretch(7, 10, 5).tolist())
        [0, 1, 2, 3, 4]
    """

    def __init__(self, num_samples: int, seed: int) -> None:
        self.num_samples = num_samples
        self.is_computed = num_samples > SORTED_UP_TO
        self.rounds_per_stretch = 1 if self.is_computed else max(1, SORTED_UP_TO // num_samples)
        self.stretch = num_samples * self.rounds_per_stretch
        self._words = KeyedWords(seed, Purpose.COMPUTED)
        # The keys and the table made last, each with its number: one pair, so that an interrupt cannot separate them.
        self._keys: tuple[int, UInt64Array] | None = None
        self._table: tuple[int, Int64Array] | None = None

    def keys(self, number: int) -> UInt64Array:
        """Return the keys of a computed stretch."""
        if self._keys is None or self._keys[0] != number:
            self._keys = (number, self._words.at(number).words(_KEYS))
        return self._keys[1]

    def of_stretch(self, number: int, start: int, count: int) -> Int64Array:
        """Return the samples at `count` places of stretch `number`, from place `start` on."""
        if self.is_computed:
            permutation = ComputedPermutations([self.num_samples], self.keys(number).reshape(1, -1))
            pieces = [
                permutation.at(np.arange(first, min(first + DRAWS_PER_BLOCK, start + count)))
                for first in range(start, start + count, DRAWS_PER_BLOCK)
            ]
            return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *pieces])
        if self._table is None or self._table[0] != number:
            drawn = self._words.at(number).permutations(self.rounds_per_stretch, self.num_samples)
            self._table = (number, drawn.ravel())
        return self._table[1][start : start + count]

    def of_round(self, number: int, start: int, count: int) -> Int64Array:
        """Return the samples at `count` places of round `number`, from place `start` on."""
        stretch, place = divmod(number, self.rounds_per_stretch)
        return self.of_stretch(stretch, place * self.num_samples + start, count)
