"""Ways to arrange indices that several orders share: to shuffle stretches of them, to sort them by small keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from replenish.draws import Int64Array, KeyedWords, UInt64Array

_DIGIT = 16  # bits; numpy sorts integers of so many by counting, several times as fast as longer ones
_LEAST_COUNTED = 2**10  # shorter rows are sorted as fast by comparing


def shuffled_stretches(words: KeyedWords, sizes: Iterable[int]) -> Int64Array:
    """Return a permutation of range(sum(sizes)) that shuffles each stretch of consecutive places within itself.

    Each stretch is uniform and independent of the others; neighbours of one size are drawn together.

    Example:
        >>> from replenish.draws import Purpose
        >>> found = shuffled_stretches(KeyedWords(0, Purpose.EPOCH).at(0), [3, 3, 2])
        >>> sorted(found[:3].tolist()), sorted(found[3:6].tolist()), sorted(found[6:].tolist())
        ([0, 1, 2], [3, 4, 5], [6, 7])
    """
    pieces, first = [], 0
    for size, equal in itertools.groupby(sizes):
        count = sum(1 for _ in equal)
        starts = first + size * np.arange(count)
        piece = _permutations(words, count, size)
        piece += starts[:, np.newaxis]
        pieces.append(piece.ravel())
        first += count * size
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *pieces])


def _permutations(words: KeyedWords, count: int, size: int) -> Int64Array:
    """Return `count` permutations of range(size), one a row, independent and exactly uniform.

    As `KeyedWords.permutations`, but rows in which two words are equal in all but as many low bits as a place has are
    drawn again, which is faster to find: with up to 2**20 places that is seldom.
    """
    order, tied = _sorting_order(words.words(count * size).reshape(count, size))
    if tied.size:
        order[tied] = words.permutations(tied.size, size)
    return order


def permutation(words: KeyedWords, size: int) -> Int64Array:
    """Return what `words.permutations(1, size)[0]` returns, in a third of the time where the size is large."""
    drawn = words.words(size)
    order, tied = _sorting_order(drawn.reshape(1, size).copy())
    if not tied.size:
        return order[0]
    return np.argsort(drawn) if np.diff(np.sort(drawn)).all() else words.permutations(1, size)[0]


def _sorting_order(words: UInt64Array) -> tuple[Int64Array, Int64Array]:
    """Return the order that sorts each row of random words, which are changed, and the rows where it is not certain.

    The places take the low bits of the words, so that these themselves are sorted; they may be equal in the others.
    """
    size = words.shape[1]
    low_bits = np.uint64((1 << (size - 1).bit_length()) - 1)
    words &= ~low_bits
    words |= np.arange(size, dtype=np.uint64)
    words = _sorted_rows(words)
    apart = (words[:, 1:] ^ words[:, :-1]) > low_bits
    words &= low_bits
    tied = np.empty(0, dtype=np.int64) if apart.all() else np.flatnonzero(~apart.all(axis=1))
    return words.view(np.int64), tied


def _sorted_rows(words: UInt64Array) -> UInt64Array:
    """Return uniform random words, all different, with each row sorted.

    By counting their top digits, of which there are so many that few words share them; those are then put right by
    swapping neighbours. That is several times as fast as `sort`, which compares.
    """
    count, size = words.shape
    if size < _LEAST_COUNTED:
        words.sort(axis=1)
        return words
    digits = -(-(size.bit_length() + 2) // _DIGIT)
    firsts = size * np.arange(count)[:, np.newaxis]
    digit = np.empty(words.shape, dtype=np.uint16)
    for shift in range(64 - _DIGIT * digits, 64, _DIGIT):
        np.right_shift(words, np.uint64(shift), out=digit, casting="unsafe")  # the cast keeps the low bits
        order = np.argsort(digit, axis=1, kind="stable")
        order += firsts
        words = words.ravel().take(order)
    flat, sharing = words.ravel(), np.flatnonzero((words[:, 1:] ^ words[:, :-1]) < 2 ** (64 - _DIGIT * digits))
    sharing += sharing // (size - 1)  # as places of the whole
    while (wrong := sharing[flat[sharing + 1] < flat[sharing]]).size:
        wrong = wrong[np.diff(wrong, prepend=-2) > 1]  # a word goes one way at a time
        flat[wrong], flat[wrong + 1] = flat[wrong + 1], flat[wrong]
    return words


def stable_order(keys: Int64Array, bound: int) -> Int64Array:
    """Return the order that sorts `keys`, integers in [0, bound); equal ones stay in their order.

    Example:
        >>> stable_order(np.array([2, 0, 2, 1]), bound=3).tolist()
        [1, 3, 0, 2]
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")  # by the lowest digit: the cast keeps the low bits
    for shift in range(_DIGIT, (bound - 1).bit_length(), _DIGIT):
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
    return order
