"""The sequence that refills the pool: which sample is at which position.

A sequence maps positions 0 ... length-1 to sample indices and repeats without end. There are three kinds: the identity
(as in the paper), a fixed permutation drawn from the seed (the default), and an array of indices, in which some may
repeat (`weighted_sequence`) or be missing (a subset). A fourth kind is not fixed: it draws a new permutation for every
round.
"""

from __future__ import annotations

import functools
import heapq
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose
from replenish.orders.arrangement import permutation
from replenish.orders.cursor import digest

# Up to this size a shuffled sequence is a uniform permutation, made by sorting random words. Above, it is computed.
SORTED_UP_TO = 4096
# Up to this size a computed permutation is kept as a table of 32-bit integers.
TABLE_UP_TO = 2**22
# The tables for computing it grow as the square root of the size: 300 MB here, and terabytes at 2**62.
SHUFFLED_UP_TO = 2**40
# How many permutations of a reshuffled sequence are kept.
ROUNDS_KEPT = 32

IntegerArray = npt.NDArray[Any]  # of 32 or 64 bits


class Sequence(Protocol):
    """A map from positions to samples."""

    length: int  # of a round
    period: int  # after how many positions it repeats: one round, unless the rounds differ
    name: str  # in an order's config

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`, each in [0, period)."""
        ...


class IdentitySequence:
    """Sample i is at position i, as in the paper's figure 1."""

    name = "identity"

    def __init__(self, length: int) -> None:
        self.length = self.period = length

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        return positions.astype(np.int64)


class ShuffledSequence:
    """A fixed permutation of range(length), drawn from the seed.

    Up to `SORTED_UP_TO` it is exactly uniform, made by sorting random words. Above, it is a keyed bijection, computed
    rather than stored, so that a first batch needs no pass over the data. A position is written as (high, low), low in
    [0, 2**bits) and high in [0, rows), with rows * 2**bits just over the length. Six rounds alternately look up one
    half in a table of independent random numbers and add the result to the other half: an unbalanced Feistel network
    over random functions. A result outside the range is permuted again. Each round can be undone, so the whole is a
    bijection.

    Without `number` it is the fixed permutation of the seed. With `number` it is the permutation of that round of a
    `ReshuffledSequence`, and a computed one is not kept as a table.
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
        # The halves are reduced modulo their sizes once, at the end. Until then they grow by one size per round, and
        # tables that repeat up to that length save a division per element and round.
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
            # Only positions in the range. For others, permuting again may never lead back into the range.
            count = min(mixed_high.size, self.length - first * columns)
            table[first * columns : first * columns + count] = self._mixed(mixed_high[:count], low[:count])
        return table

    def _compute(self, positions: Int64Array) -> Int64Array:
        high, low = positions >> self._bits, positions & ((1 << self._bits) - 1)
        return self._mixed(high + self._rounds[0][0].take(low), low)

    def _mixed(self, high: Int64Array, low: Int64Array) -> Int64Array:
        """Do all rounds after the first half round, then permute results outside the range again."""
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

    Each is a permutation of `ShuffledSequence`: exactly uniform up to `SORTED_UP_TO`, computed above. The period has
    more rounds than any run reaches.
    """

    name = "reshuffled"

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        self.period = length * (2**62 // length)
        # A pool holds positions of about the last ln M rounds. The tables of an older round are made again.
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
        self.indices: IntegerArray = checks.read_only(indices.astype(np.int32 if num_samples <= 2**31 else np.int64))

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        return self.indices.take(positions).astype(np.int64)


def make_sequence(sequence: str | npt.ArrayLike, num_samples: int, seed: int) -> Sequence:
    """Return the sequence for the argument `sequence` of an order, a name or an array."""
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
    return ListedSequence(_checked_indices(sequence, num_samples), num_samples)


def _checked_indices(sequence: str | npt.ArrayLike, num_samples: int) -> Int64Array:
    """Return the indices of a listed sequence, or raise."""
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
    return indices.astype(np.int64)


def weighted_sequence(weights: npt.ArrayLike, length: int) -> Int64Array:
    """Return `length` indices in which index i appears in proportion to `weights[i]`, spread evenly.

    Each count is its exact share of `length`, rounded down or up by largest remainders. Of equal remainders, the lower
    index comes first. All of this is in whole numbers, so rounding errors decide nothing. The indices are then laid out
    by earliest deadline: copy j of c may come from position floor(j length / c) on and must come before position
    ceil((j+1) length / c). This is the "proportionate fair" schedule on one processor, which always exists. So in every
    prefix, each index appears within 1 of count * prefix / length times. The result depends only on the arguments.

    `SequencedReplacement(..., sequence=weighted_sequence(w, n))` is a weighted sampler whose frequencies are
    guaranteed, not only expected.

    Args:
        weights: One non-negative, finite weight per sample, at least one of them positive.
        length: The length of the sequence; it costs a few microseconds per place.

    Example:
        >>> weighted_sequence([3, 1, 2], 6).tolist()
        [0, 2, 0, 1, 0, 2]
    """
    length = checks.integer("length", length, minimum=1)
    array = checks.array("weights", weights)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"weights should be one number per sample, but got an array of shape {array.shape}")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    checks.check_weights("weights", array)
    return _lay_out(_counts(_as_whole_numbers(array.tolist()), length), length)


def _as_whole_numbers(weights: list[int] | list[float]) -> list[int]:
    """Return the weights times a power of two that makes all whole. This is exact: a float is a binary fraction."""
    fractions = [weight.as_integer_ratio() for weight in weights]
    unit = max(denominator for _, denominator in fractions)
    return [numerator * (unit // denominator) for numerator, denominator in fractions]


def _counts(weights: list[int], length: int) -> list[int]:
    """Divide `length` in proportion: shares rounded down, and one more for the largest remainders."""
    total = sum(weights)
    shares = [divmod(weight * length, total) for weight in weights]
    counts = [whole for whole, _ in shares]
    by_remainder = sorted(range(len(shares)), key=lambda index: -shares[index][1])  # stable: the lower index first
    for index in by_remainder[: length - sum(counts)]:
        counts[index] += 1
    return counts


def _lay_out(counts: list[int], length: int) -> Int64Array:
    """Lay out counts[i] copies of each i by earliest deadline among those whose window is open."""
    # An entry is (key, index, copy). Copies wait by the start of their window, then compete by its end.
    waiting = [(0, index, 0) for index, count in enumerate(counts) if count]
    competing: list[tuple[int, int, int]] = []
    order = np.empty(length, dtype=np.int64)
    for place in range(length):
        while waiting and waiting[0][0] <= place:
            _, index, copy = heapq.heappop(waiting)
            heapq.heappush(competing, (-(-(copy + 1) * length // counts[index]), index, copy))
        _, index, copy = heapq.heappop(competing)
        order[place] = index
        if copy + 1 < counts[index]:
            heapq.heappush(waiting, ((copy + 1) * length // counts[index], index, copy + 1))
    return order
