"""The sequence that refills the pool: which sample stands at which position.

A sequence maps positions 0 ... length-1 to sample indices and repeats for ever. Three kinds: the identity
(the letter of the paper), a fixed permutation drawn from the seed (the default), and an array of indices
given by the user, in which indices may repeat (a weighted sequence) or be missing (a subset). A fourth
is not fixed: it draws a new permutation for every round.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose
from replenish.orders.arrangement import permutation
from replenish.orders.per_sample import digest, kept

# Up to this size a shuffled sequence is a uniform permutation, made by sorting random words ...
SORTED_UP_TO = 4096
# ... above, a computed one, which needs little memory; up to this size it is kept as a table of 32-bit integers.
TABLE_UP_TO = 2**22
# What it is computed from grows as the root of the size: 300 MB here, and terabytes at 2**62.
SHUFFLED_UP_TO = 2**40
# How many permutations of a reshuffled sequence are kept.
ROUNDS_KEPT = 32

IntegerArray = npt.NDArray[Any]  # of 32 or 64 bits


class Sequence(Protocol):
    """A map from positions to samples."""

    length: int  # of a round
    period: int  # after how many positions it repeats: a round, unless every round is another
    name: str  # what stands in an order's config

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`, each in [0, period)."""
        ...


class IdentitySequence:
    """Sample i stands at position i, as in the paper's figure 1."""

    name = "identity"

    def __init__(self, length: int) -> None:
        self.length = self.period = length

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        return positions.astype(np.int64)


class ShuffledSequence:
    """A fixed permutation of range(length), drawn from the seed.

    Up to `SORTED_UP_TO` it is exactly uniform, made by sorting random words. Above, it is a keyed bijection
    that is computed rather than stored (so that a first batch needs no pass over the data): a position is
    written as (high, low) with `low` in [0, 2**bits) and `high` in [0, rows), rows * 2**bits just over
    length; six rounds in turn add to one half a table of independent random numbers looked up with the
    other (an unbalanced Feistel network over random functions); a result outside the range goes through
    again. Each round can be undone, so the whole is a bijection.

    Without a number it is the fixed permutation of the seed; with one, one of many, which is not kept as a table where
    it can be computed, since it serves one round only.
    """

    name = "shuffled"

    def __init__(self, length: int, seed: int, number: int | None = None) -> None:
        self.length = self.period = length
        if number is None:
            words = KeyedWords(seed, Purpose.SEQUENCE).at(length)
        else:
            words = KeyedWords(seed, Purpose.ROUND).at(number)
        self._table: npt.NDArray[np.int32] | None = None
        if length <= SORTED_UP_TO:
            self._table = permutation(words, length).astype(np.int32)
            return
        self._bits = length.bit_length() // 2
        columns, rows = 1 << self._bits, -(-length >> self._bits)
        # The halves are reduced once, at the end. Until then they grow by one size a round, and
        # tables that are as long save a division for every element and round.
        from_low = np.tile(words.below(rows, 3 * columns).reshape(3, columns), 4)
        from_high = np.tile(words.below(columns, 3 * rows).reshape(3, rows), 4)
        self._rounds = list(zip(from_low, from_high, strict=True))
        self._reduced_high = np.tile(np.arange(rows, dtype=np.int64) << self._bits, 4)
        if number is None and length <= TABLE_UP_TO:
            self._table = self._tabulated(rows, columns)

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        if self._table is not None:
            return self._table.take(positions).astype(np.int64)
        return self._compute(positions.astype(np.int64))

    def _tabulated(self, rows: int, columns: int) -> npt.NDArray[np.int32]:
        """Compute the samples of all positions in order, in pieces that stay in the cache."""
        table = np.empty(self.length, dtype=np.int32)
        rows_at_once = max(1, DRAWS_PER_BLOCK // columns)
        low = np.tile(np.arange(columns), rows_at_once)
        for first in range(0, rows, rows_at_once):
            high = np.arange(first, min(first + rows_at_once, rows))
            # The first half round, for which a row of positions needs no look-up.
            mixed_high = np.add.outer(high, self._rounds[0][0][:columns]).ravel()
            # Only positions in the range: the way back into it ends for these, not for all others.
            count = min(mixed_high.size, self.length - first * columns)
            table[first * columns : first * columns + count] = self._mixed(mixed_high[:count], low[:count])
        return table

    def _compute(self, positions: Int64Array) -> Int64Array:
        high, low = positions >> self._bits, positions & ((1 << self._bits) - 1)
        return self._mixed(high + self._rounds[0][0].take(low), low)

    def _mixed(self, high: Int64Array, low: Int64Array) -> Int64Array:
        """Go on after the first half round: the other five, and the way back into the range."""
        low = low + self._rounds[0][1].take(high)
        for from_low, from_high in self._rounds[1:]:
            high += from_low.take(low)
            low += from_high.take(high)
        samples = self._reduced_high.take(high)
        low &= (1 << self._bits) - 1
        samples += low
        outside = samples >= self.length
        if outside.any():
            samples[outside] = self._compute(samples[outside])
        return samples


class ReshuffledSequence:
    """A new permutation of range(length) in every round, drawn from the seed and the round's number.

    Each is what `ShuffledSequence` would be: exactly uniform up to `SORTED_UP_TO`, computed above. The rounds are
    numbered without end; the period is so many rounds that no run reaches it.
    """

    name = "reshuffled"

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        self.period = length * (2**62 // length)
        # A pool holds positions of the last ln M rounds or so; one from before that costs its tables anew.
        self._round = functools.lru_cache(maxsize=ROUNDS_KEPT)(lambda number: ShuffledSequence(length, seed, number))

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`, each in [0, period)."""
        numbers, places = np.divmod(positions, self.length)
        samples = np.empty(positions.shape, dtype=np.int64)
        for number in np.unique(numbers).tolist():
            of_round = numbers == number
            samples[of_round] = self._round(number).at(places[of_round])
        return samples


class ListedSequence:
    """The indices of an array, in its order."""

    def __init__(self, indices: Int64Array, num_samples: int) -> None:
        self.length = self.period = len(indices)
        self.name = digest(indices)
        self.indices: IntegerArray = kept(indices.astype(np.int32 if num_samples <= 2**31 else np.int64))

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        return self.indices.take(positions).astype(np.int64)


def make_sequence(sequence: str | npt.ArrayLike, num_samples: int, seed: int) -> Sequence:
    """Return the sequence that the argument `sequence` of an order stands for."""
    if isinstance(sequence, str):
        if sequence == "identity":
            return IdentitySequence(num_samples)
        if sequence in ("shuffled", "reshuffled"):
            if num_samples > SHUFFLED_UP_TO:
                raise ValueError(
                    f'num_samples should be at most {SHUFFLED_UP_TO} with sequence="{sequence}", but got '
                    f'{num_samples}; take sequence="identity"'
                )
            return (ShuffledSequence if sequence == "shuffled" else ReshuffledSequence)(num_samples, seed)
    indices = checks.array("sequence", sequence)
    if indices.ndim == 0:
        raise ValueError(
            f'sequence should be "shuffled", "identity", "reshuffled" or an array of integers, but got {sequence!r}'
        )
    if indices.ndim != 1:
        raise ValueError(f"sequence should have one dimension, but got an array of shape {indices.shape}")
    if indices.size == 0:
        raise ValueError("sequence should hold at least one index, but got an empty one")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"sequence should hold integers, but got an array of dtype {indices.dtype}")
    for extreme in (int(indices.min()), int(indices.max())):
        if not 0 <= extreme < num_samples:
            raise ValueError(
                f"sequence should hold indices in [0, {num_samples}), num_samples being {num_samples}, "
                f"but got {extreme}"
            )
    return ListedSequence(indices.astype(np.int64), num_samples)
