"""Arrange indices: shuffle consecutive stretches, sort by small keys. Several orders use these functions."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array, KeyedWords, UInt64Array

_DIGIT = 16  # bits; numpy sorts integers of this width by counting, several times as fast as wider ones
_LEAST_COUNTED = 400  # for shorter rows, sorting by comparison is as fast
_LEAST_ALONE = 2**12  # the same limit for a single row
_AT_ONCE = 2**16  # words; a larger array is new memory at every call, which costs more than sorting it


def shuffle_stretches(words: KeyedWords, values: Int64Array, sizes: Iterable[int]) -> None:
    """Shuffle each stretch of consecutive values (or rows) within itself; `sizes` holds the lengths of the stretches.

    Each stretch is shuffled uniformly and independently of the others. Neighbours of equal size are drawn together. A
    stretch is drawn again if two of its words differ only in the low bits that hold a place. That is faster to detect
    than equal words, and rare with up to 2**20 places.

    Example:
        >>> from replenish.draws import Purpose
        >>> values = np.arange(8)
        >>> shuffle_stretches(KeyedWords(0, Purpose.EPOCH).at(0), values, [3, 3, 2])
        >>> sorted(values[:3].tolist()), sorted(values[3:6].tolist()), sorted(values[6:].tolist())
        ([0, 1, 2], [3, 4, 5], [6, 7])
    """
    last = 0
    for size, equal in itertools.groupby(sizes):
        first, last = last, last + size * sum(1 for _ in equal)
        again = []
        for start in range(first, last, size * max(1, _AT_ONCE // size)):
            part = values[start : min(last, start + size * max(1, _AT_ONCE // size))]
            order, tied = _sorting_order(words.words(len(part)).reshape(-1, size))
            order[tied] = size * tied[:, np.newaxis] + np.arange(size)
            again += (start + size * tied).tolist()
            part[:] = part.take(order.ravel(), axis=0)
        if again:
            for start, order in zip(again, words.permutations(len(again), size), strict=True):
                values[start : start + size] = values[start + order]


def permutation(words: KeyedWords, size: int) -> Int64Array:
    """Return what `words.permutations(1, size)[0]` returns; several times as fast for large sizes.

    It takes 8 bytes per sample: each place replaces the low bits of its word, and the words are sorted in place.
    """
    if size < _LEAST_ALONE:
        return words.permutations(1, size)[0]
    again = copy.deepcopy(words)
    low_bits = np.uint64((1 << (size - 1).bit_length()) - 1)
    packed = np.empty(size, dtype=np.uint64)
    for first in range(0, size, _AT_ONCE):
        part = packed[first : first + _AT_ONCE]
        part[:] = words.words(len(part))
        part &= ~low_bits
        part |= np.arange(first, first + len(part), dtype=np.uint64)
    packed.sort()
    pieces = (packed[first : first + _AT_ONCE + 1] for first in range(0, size, _AT_ONCE))
    near = [((part[1:] ^ part[:-1]) <= low_bits).nonzero()[0] + k * _AT_ONCE for k, part in enumerate(pieces)]
    packed &= low_bits
    order = packed.view(np.int64)
    all_differ = _order_by_whole_words(order, np.concatenate(near), again)
    return order if all_differ else words.permutations(1, size)[0]


def _order_by_whole_words(order: Int64Array, near: Int64Array, words: KeyedWords) -> bool:
    """Sort the entries of `order` at `near` and just after by their whole words; return whether these all differ.

    The words of these entries agree in the bits that were kept, so the words are drawn again to compare all bits.
    """
    if not near.size:
        return True
    places = np.union1d(near, near + 1)
    wanted = np.sort(order[places])
    found = np.empty(len(wanted), dtype=np.uint64)
    for first in range(0, len(order), _AT_ONCE):
        part = words.words(min(_AT_ONCE, len(order) - first))
        mine = slice(*np.searchsorted(wanted, [first, first + len(part)]).tolist())
        found[mine] = part[wanted[mine] - first]
    whole = found[np.searchsorted(wanted, order[places])]
    group = np.cumsum(~np.isin(places - 1, near))
    by_word = np.lexsort((whole, group))
    order[places] = order[places[by_word]]
    repeated = (whole[by_word][1:] == whole[by_word][:-1]) & (group[1:] == group[:-1])
    return not repeated.any()


def spread_order(keys: Int64Array, bound: int) -> Int64Array:
    """Return what `stable_order` returns; faster where `bound` is large and the keys are spread over [0, bound).

    Example:
        >>> spread_order(np.array([2 << 30, 0, 2 << 30, 1 << 30]), bound=3 << 30).tolist()
        [1, 3, 0, 2]
    """
    return _by_counting(keys.view(np.uint64).reshape(1, -1), (bound - 1).bit_length())[0][0]


def stable_order(keys: npt.NDArray[np.integer[Any]], bound: int) -> Int64Array:
    """Return the order that sorts `keys`, integers in [0, bound); equal keys keep their order.

    Example:
        >>> stable_order(np.array([2, 0, 2, 1]), bound=3).tolist()
        [1, 3, 0, 2]
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")  # by the lowest digit: the cast keeps the low bits
    for shift in range(_DIGIT, (bound - 1).bit_length(), _DIGIT):
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def _sorting_order(words: UInt64Array) -> tuple[Int64Array, Int64Array]:
    """Return (order, tied): the places in the whole array that sort each row of random words, and uncertain rows.

    A row is uncertain if two of its words differ only in the low bits that hold a place. `words` may be overwritten.
    """
    count, size = words.shape
    low_bits = np.uint64((1 << (size - 1).bit_length()) - 1)
    if size >= _LEAST_COUNTED:
        order, near = _by_counting(words, bits=64)
        flat, places = words.ravel(), order.ravel()
        differing = flat[places[near]] ^ flat[places[near + 1]]
        return order, np.unique(near[differing <= low_bits] // size)
    # The places replace the low bits of the words, so that sorting the words sorts the places too.
    words &= ~low_bits
    words |= np.arange(size, dtype=np.uint64)
    words.sort(axis=1)
    tied = np.unique(((words[:, 1:] ^ words[:, :-1]) <= low_bits).nonzero()[0])
    words &= low_bits
    order = words.view(np.int64)
    order += size * np.arange(count)[:, np.newaxis]
    return order, tied


def _by_counting(keys: UInt64Array, bits: int) -> tuple[Int64Array, Int64Array]:
    """Return (order, near): the places in the whole array that sort each row, and where neighbours may be equal.

    First sort by the top digits, by counting, with so many digits that few keys share them all. Then swap neighbours
    until all keys are sorted; equal keys keep their order. This is several times as fast as sorting by comparison.
    """
    count, size = keys.shape
    digits = -(-(size.bit_length() + 2) // _DIGIT)
    tops = np.empty(keys.shape, dtype=[np.uint16, np.uint32, np.uint64, np.uint64][digits - 1])
    np.right_shift(keys, np.uint64(max(0, bits - _DIGIT * digits)), out=tops, casting="unsafe")
    if digits == 1:
        order = np.argsort(tops, axis=1, kind="stable")
    else:
        order = np.stack([stable_order(row, 1 << _DIGIT * digits) for row in tops])
    order += size * np.arange(count)[:, np.newaxis]
    tops = tops.ravel().take(order)
    near = np.flatnonzero(tops[:, 1:] == tops[:, :-1])
    near += near // max(1, size - 1)  # as places in the whole array
    _sort_by_swaps(order.ravel(), keys.ravel(), near)
    return order, near


def _sort_by_swaps(order: Int64Array, keys: UInt64Array, near: Int64Array) -> None:
    """Swap neighbours of `order` until their keys are sorted; `near` lists the places to check, in ascending order."""
    unsorted = near
    while (wrong := unsorted[keys[order[unsorted + 1]] < keys[order[unsorted]]]).size:
        wrong = wrong[np.diff(wrong, prepend=-2) > 1]  # of pairs that overlap, swap the first
        order[wrong], order[wrong + 1] = order[wrong + 1], order[wrong]
        if unsorted is near:  # where only two keys share their digits, one swap is enough
            alone = np.diff(near, prepend=-2, append=near[-1] + 2) > 1
            unsorted = near[~(alone[1:] & alone[:-1])]
