"""An order as one sequence of samples, by the number of the draw."""

from __future__ import annotations

import numpy as np

from replenish.draws import Int64Array
from replenish.orders.cursor import CursorOrder


class SampleReader:
    """Reads the draws of an order one after another; a read that continues the last one is cheap.

    Draws are counted over all steps: draw 0 is the first sample of step 0. Draws past 2**62 epochs start again, since
    keys have 64 bits; a run never gets there.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(SampleReader(order).read(5, 5).tolist())
        [0, 1, 2, 3, 4]
    """

    def __init__(self, order: CursorOrder) -> None:
        self._order = order
        self._cursor = order.cursor()

    def read(self, start: int, count: int) -> Int64Array:
        """Return draws start ... start + count - 1."""
        pieces, stop = [np.empty(0, dtype=np.int64)], start + count
        while start < stop:
            step, place = self._order._step_of_draw(start)
            first, rows = self._cursor.rows_at(step)
            piece = rows[step - first :].ravel()[place : place + stop - start]
            pieces.append(piece)
            start += len(piece)
        return pieces[1].copy() if len(pieces) == 2 else np.concatenate(pieces)
