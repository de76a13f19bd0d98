"""An order with other batch sizes: from some step on, or as a loader has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array
from replenish.orders.cursor import Cursor, CursorOrder, SampleReader, to_json
from replenish.orders.visits import counts_before


class Rebatched(CursorOrder):
    """An order whose batch size changes at step `at_step`; made by `order.rebatched`.

    The steps before `at_step` are the order's own. From there on, full batches continue its sequence of samples. A
    mixture keeps its shares in the new batches. A pool is still drawn and refilled in steps of the old batch size.

    Args:
        order: The order.
        batch_size: The new batch size, over all processes.
        at_step: The first step with this size.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(num_samples=12, batch_size=2).rebatched(4, at_step=2)
        >>> [len(batch) for batch in order.batches(0, 4)]
        [2, 2, 4, 4]
        >>> sorted(index for batch in order.batches(0, 4) for index in batch.tolist()) == list(range(12))
        True
    """

    def __init__(self, order: CursorOrder, batch_size: int, at_step: int) -> None:
        if not isinstance(order, CursorOrder):
            raise TypeError(f"order should be one of replenish's orders, but got a {type(order).__name__}")
        if order._shaped_by_its_batches is not None:
            raise ValueError(
                f"order should keep its batch size if it is {type(order).__name__}, since "
                f"{order._shaped_by_its_batches}; build it anew with the other batch_size"
            )
        super().__init__(order.num_samples, batch_size, seed=order.seed)
        self.order = order
        self.at_step = checks.step(at_step, "at_step")

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch at the new batch size."""
        draws = self.order.steps_per_epoch * self.order.batch_size
        last = getattr(self.order, "last_batch_size", self.order.batch_size)
        return -(-(draws - self.order.batch_size + last) // self.batch_size)

    @property
    def last_batch_size(self) -> int:
        """The size of the short batches before `at_step`; an AttributeError if all are full."""
        size: int = self.order.last_batch_size  # type: ignore[attr-defined]
        return size

    def effective_epoch(self, step: int) -> float:
        """Return the number of effective epochs in the first `step` steps, each counted at its batch size."""
        later = max(0, checks.step(step) - self.at_step)
        return self.order.effective_epoch(step - later) + later / self.steps_per_epoch

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely; the original order is JSON in `of`."""
        inner = self.order.config()
        return {
            "order": "Rebatched",
            "stream": inner["stream"],
            "num_samples": self.num_samples,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "at_step": self.at_step,
            "of": to_json(inner),
        }

    def _arguments(self) -> dict[str, Any]:
        return {"order": self.order, "batch_size": self.batch_size, "at_step": self.at_step}

    def _same_before(self, config: Mapping[str, Any], step: int) -> bool:
        before_the_change = step <= self.at_step and self.order._same_before(config, step)
        return before_the_change or super()._same_before(config, step)

    def draws_before(self, step: int) -> int:
        """Return how many samples the steps before `step` draw."""
        later = max(0, checks.step(step) - self.at_step)
        return self.order.draws_before(step - later) + later * self.batch_size

    def _step_of_draw(self, draw: int) -> tuple[int, int]:
        later = draw - self.order.draws_before(self.at_step)
        if later < 0:
            return self.order._step_of_draw(draw)
        step, place = divmod(later, self.batch_size)
        return self.at_step + step, place

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`."""
        later = max(0, checks.step(step) - self.at_step)
        counts = counts_before(self.order, step - later)
        for rows in self.blocks(self.at_step, self.at_step + later):
            counts += np.bincount(rows.ravel(), minlength=self.num_samples)
        return counts

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _RebatchedCursor(self)


class _RebatchedCursor(Cursor):
    """The order's own cursor before `at_step`, and a cursor with new batches from there on."""

    def __init__(self, rebatched: Rebatched) -> None:
        self._at_step = rebatched.at_step
        self._before = rebatched.order.cursor()
        self._after = rebatched.order._rebatched_cursor(rebatched.batch_size, rebatched.at_step)

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        if step >= self._at_step:
            return self._after.rows_at(step)
        first, rows = self._before.rows_at(step)
        return first, rows[: self._at_step - first]


class NewBatches(Cursor):
    """The samples of an order from `at_step` on, cut into batches of another size."""

    def __init__(self, order: CursorOrder, batch_size: int, at_step: int) -> None:
        self._reader = SampleReader(order)
        self._size, self._at_step, self._begin = batch_size, at_step, order.draws_before(at_step)
        self._steps = max(1, DRAWS_PER_BLOCK // batch_size)

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, rows) of the block that `step` is in; the first block begins at `at_step`."""
        first = (step - self._at_step) // self._steps * self._steps
        samples = self._reader.read(self._begin + first * self._size, self._steps * self._size)
        return self._at_step + first, samples.reshape(self._steps, self._size)


class FittedOrder(CursorOrder):
    """An order fitted to a loader: an epoch has the loader's number of steps, and its last batch has the loader's size.

    So trainings with different orders see equally many samples in batches of equal sizes. An order that goes through
    all samples in an epoch keeps its epochs. It drops as many samples as the loader. If the loader repeats samples so
    that all processes have equally many, it repeats the first of the epoch. Any other order continues from step to
    step. At the last step of an epoch it draws a whole batch and uses only the first samples. All batch sizes are over
    all processes.

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
        """Return plain ints and strings that identify the order completely."""
        return {**self.order.config(), "steps": self.steps, "loader_last_batch_size": self.last_batch_size}

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _FittedCursor(self, self.order.steps_per_epoch if self._keeps_epochs else self.steps)


class _FittedCursor(Cursor):
    """The order's own cursor, and the number of its steps that an epoch of the loader takes."""

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
        # Of the order's rows, return the steps of this epoch except its last.
        low, high = max(first, begin), min(first + len(rows), begin + steps - 1)
        return step - (begin + place - low), rows[low - first : high - first]

    def _fit(self, batch: Int64Array, begin: int, size: int) -> Int64Array:
        """Return the last batch of an epoch that begins at the order's step `begin`, cut or filled up to `size`."""
        batch = batch[:size].copy()  # a copy, since the cursor may move
        if len(batch) < size:
            first, rows = self._inner.rows_at(begin)
            batch = np.concatenate([batch, np.resize(rows[begin - first], size - len(batch))])
        return batch.reshape(1, -1)
