"""Equal entries among many, found without sorting them all: each leaves a mark, and few find another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

# The least range and the least row from which values are looked for in this way: smaller rows are sorted as fast.
LEAST_RANGE = 2**20
LEAST_ROW = 2**12
# The most values: more would want a table larger than the caches.
MOST_VALUES = 2**18


class Marks:
    """A table with a place for every stretch of neighbouring values, small enough for the cache.

    Every entry writes its own number at the place of its value, then looks. Who finds another number there shares the
    place with it; all others are alone, and equal to none. Which of several numbers stays does not matter, nor does
    what earlier blocks have left: so the table is never cleared. There are `size` entries at a time, in [0, bound).

    Example:
        >>> marks = Marks(2**30, 5)
        >>> sorted(set(marks.sharing(np.array([7, 2**29, 2**24, 7, 2**25])).tolist()))
        [0, 3]
    """

    def __init__(self, bound: int, size: int) -> None:
        # 32 places an entry, so that one in 64 shares its own.
        bits = min((bound - 1).bit_length(), (size - 1).bit_length() + 5)
        self._shift = (bound - 1).bit_length() - bits
        number: type[np.unsignedinteger[Any]] = np.uint16 if size <= 2**16 else np.uint32
        self._table = np.zeros(1 << bits, dtype=number)
        self._numbers = np.arange(size).astype(number)
        self._places = np.empty(size, dtype=np.int64)
        self._found = np.empty(size, dtype=number)

    @staticmethod
    def serve(bound: int, row: int, size: int) -> bool:
        """Say whether this is the way to look for equal entries in rows of so many of `size` in all."""
        return bound >= LEAST_RANGE and 2 * size <= bound and row >= LEAST_ROW and size <= MOST_VALUES

    def sharing(self, values: Int64Array) -> Int64Array:
        """Return the numbers of all entries that share a place with another, in no special order, some repeatedly."""
        np.right_shift(values, self._shift, out=self._places)
        self._table[self._places] = self._numbers
        self._table.take(self._places, out=self._found, mode="clip")  # in range already; "raise" would copy `out`
        others = (self._found != self._numbers).nonzero()[0]
        return np.concatenate([others, self._found[others].astype(np.int64)])

    def are_among(self, wanted: Int64Array, rows: Int64Array, values: Int64Array) -> npt.NDArray[np.bool_]:
        """Say of each wanted value whether it is in its row of `values`, which are those given to `sharing` last."""
        places = wanted >> self._shift
        near = values.ravel()[self._table[places].astype(np.int64)]
        # Nobody of this block has the place: most are out.
        found = near >> self._shift == places
        for number in found.nonzero()[0].tolist():
            found[number] = (values[rows[number]] == wanted[number]).any()
        return found
