"""The fixed sequence that refills the pool: which sample stands at which position.

A sequence maps positions 0 ... length-1 to sample indices and repeats for ever. Three kinds: the identity
(the letter of the paper), a fixed permutation drawn from the seed (the default), and an array of indices
given by the user, in which indices may repeat (a weighted sequence) or be missing (a subset).
"""

from __future__ import annotations

import hashlib
import heapq
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose

# Up to this size a shuffled sequence is a uniform permutation, made by sorting random words ...
SORTED_UP_TO = 4096
# ... above, a computed one, which needs no memory; up to this size it is kept as a table of 32-bit integers.
TABLE_UP_TO = 2**22

IntegerArray = npt.NDArray[Any]  # of 32 or 64 bits


class Sequence(Protocol):
    """A map from positions to samples."""

    length: int
    name: str  # what stands in an order's config

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`, each in [0, length)."""
        ...


class IdentitySequence:
    """Sample i stands at position i, as in the paper's figure 1."""

    name = "identity"

    def __init__(self, length: int) -> None:
        self.length = length

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
    """

    name = "shuffled"

    def __init__(self, length: int, seed: int) -> None:
        self.length = length
        words = KeyedWords(seed, Purpose.SEQUENCE).at(length)
        self._table: npt.NDArray[np.int32] | None = None
        if length <= SORTED_UP_TO:
            self._table = words.permutations(1, length)[0].astype(np.int32)
            return
        self._bits = length.bit_length() // 2
        columns, rows = 1 << self._bits, -(-length >> self._bits)
        # The halves are reduced once, at the end. Until then they grow by one size a round, and
        # tables that go on for as long save a division for every element and round.
        from_low = np.tile(words.below(rows, 3 * columns).reshape(3, columns), 4)
        from_high = np.tile(words.below(columns, 3 * rows).reshape(3, rows), 4)
        self._rounds = list(zip(from_low, from_high, strict=True))
        self._reduced_high = np.tile(np.arange(rows, dtype=np.int64) << self._bits, 4)
        if length <= TABLE_UP_TO:
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


class ListedSequence:
    """The indices of an array, in its order."""

    def __init__(self, indices: Int64Array, num_samples: int) -> None:
        self.length = len(indices)
        self.name = "sha256:" + hashlib.sha256(indices.astype("<i8").tobytes()).hexdigest()
        self.indices: IntegerArray = indices.astype(np.int32 if num_samples <= 2**31 else np.int64)
        self.indices.flags.writeable = False

    def at(self, positions: IntegerArray) -> Int64Array:
        """Return the samples at `positions`."""
        return self.indices.take(positions).astype(np.int64)


def make_sequence(sequence: str | npt.ArrayLike, num_samples: int, seed: int) -> Sequence:
    """Return the sequence that the argument `sequence` of an order stands for."""
    if isinstance(sequence, str):
        if sequence == "identity":
            return IdentitySequence(num_samples)
        if sequence == "shuffled":
            return ShuffledSequence(num_samples, seed)
        raise ValueError(f'sequence should be "shuffled", "identity" or an array of integers, but got {sequence!r}')
    indices = np.asarray(sequence)
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


def weighted_sequence(weights: npt.ArrayLike, length: int) -> Int64Array:
    """Return `length` indices in which index i appears in proportion to `weights[i]`, spread evenly.

    Each count is its exact share of `length` rounded down or up (largest remainders; of equal ones the
    lower index first). The indices are then laid out by earliest deadline: the j-th of c copies may
    stand from position floor(j length / c) and must stand before ceil((j+1) length / c). Such windows can
    always be kept (they are the "proportionate fair" schedule on one processor), so that at every prefix
    each index has appeared within 1 of count * prefix / length. The result depends on the arguments alone.

    With it, `SequencedReplacement(..., sequence=weighted_sequence(w, n))` is a weighted sampler whose
    frequencies are guaranteed, not only expected.

    Args:
        weights: One non-negative, finite weight per sample, at least one of them positive.
        length: How long the sequence is; a few microseconds are spent on each place.

    Example:
        >>> weighted_sequence([3, 1, 2], 6).tolist()
        [0, 2, 0, 1, 0, 2]
    """
    length = checks.integer("length", length, minimum=1)
    array = np.asarray(weights)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"weights should be one number per sample, but got an array of shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"weights should be real numbers, but got an array of dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all() or (array < 0).any():
        index = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0)))[0])
        raise ValueError(f"weights should be finite and not negative, but got {array[index]} at {index}")
    if not array.any():
        raise ValueError("weights should not all be zero: at least one sample needs a positive weight")

    array = array / array.max()  # so that the sum of huge weights stays finite
    shares = array / array.sum() * length
    counts = np.floor(shares).astype(np.int64)
    short = length - int(counts.sum())
    counts[np.argsort(counts - shares, kind="stable")[:short]] += 1
    return _laid_out(counts.tolist(), length)


def _laid_out(counts: list[int], length: int) -> Int64Array:
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
