"""Ways to arrange indices that several orders share: to shuffle stretches of them, to sort them by small keys."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from replenish.draws import Int64Array, KeyedWords

_DIGIT = 16  # bits; numpy sorts integers of so many by counting, several times as fast as longer ones


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

    As `KeyedWords.permutations`, with the index in the low bits of its word, so that the words themselves are sorted,
    which is faster. Rows in which two words are equal in the other bits are drawn again: with up to 2**20 places that
    is seldom.
    """
    bits = np.uint64((size - 1).bit_length())
    keys = words.words(count * size).reshape(count, size)
    keys >>= bits
    keys <<= bits
    keys |= np.arange(size, dtype=np.uint64)
    keys.sort(axis=1)
    apart = keys[:, 1:] ^ keys[:, :-1]
    apart >>= bits
    tied = np.empty(0, dtype=np.int64) if apart.all() else np.flatnonzero(~apart.all(axis=1))
    keys &= np.uint64((1 << int(bits)) - 1)
    order = keys.view(np.int64)
    if tied.size:
        order[tied] = words.permutations(tied.size, size)
    return order


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
