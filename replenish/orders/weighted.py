"""Sequences in which samples stand in proportion to weights."""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.per_sample import check_weights


def weighted_sequence(weights: npt.ArrayLike, length: int) -> Int64Array:
    """Return `length` indices in which index i appears in proportion to `weights[i]`, spread evenly.

    Each count is its exact share of `length` rounded down or up (largest remainders; of equal ones the lower index
    first, in whole numbers, so that no rounding decides). The indices are then laid out by earliest deadline: the j-th
    of c copies may stand from position floor(j length / c) and must stand before ceil((j+1) length / c). Such windows
    can always be kept (they are the "proportionate fair" schedule on one processor), so that at every prefix each
    index has appeared within 1 of count * prefix / length. The result depends only on the arguments.

    With it, `SequencedReplacement(..., sequence=weighted_sequence(w, n))` is a weighted sampler whose
    frequencies are guaranteed, not only expected.

    Args:
        weights: One non-negative, finite weight per sample, at least one of them positive.
        length: How long the sequence is; it costs a few microseconds per place.

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
    check_weights("weights", array)
    return _laid_out(_counts(_in_one_unit(array.tolist()), length), length)


def _in_one_unit(weights: list[int] | list[float]) -> list[int]:
    """Return the weights times a power of two that makes all whole: exactly, for a float is a binary fraction."""
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
