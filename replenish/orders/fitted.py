"""An order in the batches of a loader that is there already: as many steps an epoch, and as many samples a step."""

from __future__ import annotations

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.cursor import Cursor, CursorOrder


class FittedOrder(CursorOrder):
    """An order whose epochs have the steps of a loader, and whose last batch of an epoch has the loader's size.

    So trainings that differ in the order see equally many samples in batches of equal sizes. An order that goes through
    all samples in an epoch keeps its epochs: what the loader drops is dropped, and where it repeats samples so that
    all processes have equally many, the first of the epoch are repeated. Any other order continues from step to step;
    at the last step of an epoch it draws a whole batch, of which the first samples are used. All sizes of batches are
    over all processes.

    Example:
        >>> from replenish import SequencedReplacement
        >>> fitted = FittedOrder(SequencedReplacement(10, 4), steps=3, last_batch_size=2)
        >>> [len(batch) for batch in fitted.batches(0, 6)]
        [4, 4, 2, 4, 4, 2]
    """

    def __init__(self, order: CursorOrder, steps: int, last_batch_size: int) -> None:
        self.order = order
        self.steps = checks.integer("steps", steps, minimum=1)
        self.last_batch_size = checks.integer("last_batch_size", last_batch_size, minimum=1, maximum=order.batch_size)
        # Orders that keep a short last batch go through all samples in an epoch.
        self._keeps_epochs = hasattr(order, "last_batch_size") and order.steps_per_epoch >= steps
        super().__init__(order.num_samples, order.batch_size, seed=order.seed)

    @property
    def steps_per_epoch(self) -> int:
        """How many steps the loader has in an epoch."""
        return self.steps

    _shaped_by_its_batches = "the loader that it is fitted to has its own batches"

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that name the order completely."""
        return {**self.order.config(), "steps": self.steps, "loader_last_batch_size": self.last_batch_size}

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _Fitted(self, self.order.steps_per_epoch if self._keeps_epochs else self.steps)


class _Fitted(Cursor):
    """The order's own cursor, and how many of its steps an epoch of the loader has."""

    def __init__(self, fitted: FittedOrder, own_steps: int) -> None:
        self._fitted = fitted
        self._own_steps = own_steps
        self._inner = fitted.order.cursor()

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        steps, size = self._fitted.steps_per_epoch, self._fitted.last_batch_size
        epoch, place = divmod(step, steps)
        begin = epoch * self._own_steps
        first, rows = self._inner.rows_at(begin + place)
        if place == steps - 1:
            return step, self._fit(rows[begin + place - first], begin, size)
        # Of what the order has at hand, the steps of this epoch before its last.
        low, high = max(first, begin), min(first + len(rows), begin + steps - 1)
        return step - (begin + place - low), rows[low - first : high - first]

    def _fit(self, batch: Int64Array, begin: int, size: int) -> Int64Array:
        """Return the last batch of an epoch that begins at the order's step `begin`, cut or filled up to `size`."""
        batch = batch[:size].copy()  # before the cursor moves
        if len(batch) < size:
            first, rows = self._inner.rows_at(begin)
            batch = np.concatenate([batch, np.resize(rows[begin - first], size - len(batch))])
        return batch.reshape(1, -1)
