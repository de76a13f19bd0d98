"""The epochs of an order, handed out one by one to the passes over a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.locks import ForkSafeLock
from replenish.orders.cursor import Cursor
from replenish.orders.rebatched import FittedOrder
from replenish.sharding import share_of
from replenish.torch.loader_record import LoaderRecord
from replenish.torch.pass_sizes import PassSizes

# Indices are converted to lists in groups of this size: more Python ints than fit the cache cost twice as much each.
INDICES_PER_CONVERSION = 8192


class EpochStream:
    """The epochs of an order with one seed. Every pass takes the next one, however many passes run at once.

    The order is made anew where a dataset has changed its size; its epochs continue.

    Args:
        make_order: Returns the order for the sizes of a pass.
        record: Counts the passes.
        changed: Called when the record has changed.
        first_epoch: The epoch of the first pass.
    """

    def __init__(
        self,
        make_order: Callable[[PassSizes], FittedOrder],
        record: LoaderRecord,
        changed: Callable[[], None],
        first_epoch: int = 0,
    ) -> None:
        self.record = record
        self.under_way = 0  # passes that have begun and are neither exhausted nor left
        self._make_order, self._changed = make_order, changed
        self._next_epoch = first_epoch
        self._lock = ForkSafeLock()
        self._sizes: PassSizes | None = None
        self._order: FittedOrder | None = None
        self._spare_cursor: Cursor | None = None  # where the latest pass ended: the next epoch is near

    def draw(self, sizes: PassSizes, choices: Sequence[Any] | None, at_least: int = 0) -> Iterator[Any]:
        """Yield the indices of one pass: those of the next epoch, or of epoch `at_least` if that is later.

        Args:
            sizes: The sizes of the pass.
            choices: What the order's indices choose from; None if they are the samples' own.
            at_least: The epoch that the training set.
        """
        record = self.record
        with self._lock.lock:
            epoch = max(self._next_epoch, at_least)
            order, cursor = self._order_for(sizes), self._spare_cursor
            self._next_epoch, self._spare_cursor = epoch + 1, None
            self.under_way += 1
            record.passes += 1
            record.epochs = (epoch if record.epochs is None else record.epochs[0], epoch)
            record.num_samples, record.batch_size = sizes.num_samples, sizes.batch_size if sizes.list_size else None
            if record.left_early is not None:
                record.left_early += 1  # until its last index is drawn
        self._changed()
        cursor = order.cursor() if cursor is None else cursor
        remaining = sizes.steps
        try:
            for block in order.blocks(epoch * sizes.steps, (epoch + 1) * sizes.steps, cursor):
                remaining -= len(block)
                yield from self._lists(block, sizes, choices, is_last=remaining == 0)
        finally:
            with self._lock.lock:
                self.under_way -= 1
                if self._order is order:
                    self._spare_cursor = cursor
            self._changed()

    def _order_for(self, sizes: PassSizes) -> FittedOrder:
        if self._order is None or sizes != self._sizes:
            self._order, self._sizes, self._spare_cursor = self._make_order(sizes), sizes, None
        drawn = self.record.drawn
        if drawn is None or len(drawn) < sizes.num_samples:
            self.record.drawn = np.zeros(sizes.num_samples, dtype=bool)
            if drawn is not None:
                self.record.drawn[: len(drawn)] = drawn
        return self._order

    def _lists(
        self, block: npt.NDArray[np.int64], sizes: PassSizes, choices: Sequence[Any] | None, *, is_last: bool
    ) -> Iterator[Any]:
        """Yield this process's indices of some steps, and mark those that are drawn."""
        rows = block[:, share_of(block.shape[1], sizes.num_replicas, sizes.rank)]
        length = sizes.list_size or 1
        if rows.shape[1] % length == 0:  # processes may take the parts of a step in turn
            rows = rows.reshape(-1, length)
        group = max(1, INDICES_PER_CONVERSION // rows.shape[1])
        for first in range(0, len(rows), group):
            part = rows[first : first + group]
            indices, place = part.ravel(), 0
            lists = part.tolist()
            if rows.shape[1] > length:  # the last step, in parts of which the last is short
                lists = [each[start : start + length] for each in lists for start in range(0, len(each), length)]
            final = len(lists) - 1 if is_last and first + group >= len(rows) else -1
            for number, each in enumerate(lists):
                self._mark(indices[place : place + len(each)], is_final=number == final)
                place += len(each)
                chosen = each if choices is None else [choices[index] for index in each]
                yield chosen if sizes.list_size else chosen[0]

    def _mark(self, indices: npt.NDArray[np.int64], *, is_final: bool) -> None:
        drawn = self.record.drawn
        assert drawn is not None
        drawn[indices] = True
        if is_final and self.record.left_early is not None:
            with self._lock.lock:
                self.record.left_early -= 1
