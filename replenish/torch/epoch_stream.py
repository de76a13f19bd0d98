"""An order's epochs for a shuffling loader: one new epoch per pass, with the loader's own sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.locks import ForkSafeLock
from replenish.orders.cursor import Cursor
from replenish.orders.rebatched import FittedOrder
from replenish.sharding import share_of
from replenish.torch.describe import LoaderDescription
from replenish.torch.loader_record import LoaderRecord
from replenish.torch.step_sampler import INDICES_PER_CONVERSION


@dataclass(frozen=True)
class PassSizes:
    """The sizes of one pass over a shuffling loader. The batch sizes count the samples of all processes."""

    num_samples: int  # the samples to choose from
    batch_size: int  # the samples per step
    steps: int
    last_batch_size: int  # the samples in the last step
    num_replicas: int  # the processes among which the sampler itself divides each batch
    rank: int  # the number of this process
    list_size: int | None  # the indices in a list that the sampler yields; None if it yields single indices


def sizes_of(found: LoaderDescription, parts: int, *, everything: bool) -> PassSizes | str:
    """Return the sizes of a pass, or in a few words why an order cannot replace the sampler.

    Args:
        found: The sampler to replace.
        parts: How many processes take its batches in turn. A step is one batch of each.
        everything: Whether samplers that do not shuffle are also replaced.
    """
    if found.kind == "stream":
        return "an IterableDataset gives samples in its own order"
    if found.kind == "replacement":
        return "its RandomSampler draws with replacement, which is not shuffling"
    if not found.shuffles:
        if found.kind not in ("sequential", "distributed"):
            return f"it has a sampler of its own, {found.sampler_name}"
        if not everything:
            return "it does not shuffle"
    num_samples, each = _population(found), len(found.sampler)
    if each > num_samples:
        return f"its RandomSampler goes through {num_samples:,} samples more than once in an epoch"
    list_size = found.batch_size or 1
    items = each // list_size * list_size if found.drop_last else each
    if items == 0:
        return "it drops its only batch, which is short"
    replicas, rank = (found.num_replicas, found.rank) if found.kind == "distributed" else (1, 0)
    size = min(list_size * parts, items)
    steps = -(-items // size)
    if size * replicas > num_samples:
        return f"its batch of {size * replicas:,} is larger than its {num_samples:,} samples"
    last = (items - (steps - 1) * size) * replicas
    return PassSizes(num_samples, size * replicas, steps, last, replicas, rank, found.batch_size)


def _population(found: LoaderDescription) -> int:
    if found.indices is not None:
        return len(found.indices)
    return len(found.sampler.dataset if found.kind == "distributed" else found.sampler.data_source)


class EpochStream:
    """The epochs of an order with one seed. Every pass takes the next epoch, even while other passes run.

    If the dataset changes its size, a new order continues at the next epoch.

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
        self.under_way = 0  # the number of passes that have begun and were neither exhausted nor left
        self.latest: tuple[FittedOrder, int, PassSizes] | None = None  # order, first step, sizes of the latest pass
        self._make_order, self._changed = make_order, changed
        self._next_epoch = first_epoch
        self._lock = ForkSafeLock()
        self._sizes: PassSizes | None = None
        self._order: FittedOrder | None = None
        self._spare_cursor: Cursor | None = None  # where the latest pass ended, close to the next epoch

    def draw(self, sizes: PassSizes, choices: Sequence[Any] | None, at_least: int) -> Iterator[Any]:
        """Yield the indices of one pass, which is the next epoch, or epoch `at_least` if that is later.

        Args:
            sizes: The sizes of the pass.
            choices: The samples that the order's indices select, or None if they are indices of the dataset.
            at_least: The epoch that the training loop set.
        """
        record = self.record
        with self._lock.lock:
            epoch = max(self._next_epoch, at_least)
            order, cursor = self._order_for(sizes), self._spare_cursor
            self._next_epoch, self._spare_cursor = epoch + 1, None
            self.latest = order, epoch * sizes.steps, sizes
            self.under_way += 1
            record.passes += 1
            record.epochs = (epoch if record.epochs is None else record.epochs[0], epoch)
            record.num_samples, record.batch_size = sizes.num_samples, sizes.batch_size if sizes.list_size else None
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
        missing = sizes.num_samples - len(self.record.drawn)
        if missing > 0:
            self.record.drawn = np.pad(self.record.drawn, (0, missing))
        return self._order

    def _lists(
        self, block: npt.NDArray[np.int64], sizes: PassSizes, choices: Sequence[Any] | None, *, is_last: bool
    ) -> Iterator[Any]:
        """Yield this process's indices of a block of steps, and mark the samples drawn in the record."""
        rows = block[:, share_of(block.shape[1], sizes.num_replicas, sizes.rank)]
        length, size = sizes.list_size or 1, rows.shape[1]
        group = max(1, INDICES_PER_CONVERSION // size)
        for first in range(0, len(rows), group):
            part = rows[first : first + group]
            for number, (row, indices) in enumerate(zip(part, part.tolist(), strict=True), first + 1):
                for start in range(0, size, length):  # processes may take the parts of a step in turn
                    stop = start + length
                    self.record.drawn[row[start:stop]] = True
                    if is_last and number == len(rows) and stop >= size:
                        with self._lock.lock:
                            self.record.left_early -= 1
                    each = indices[start:stop]
                    chosen = each if choices is None else [choices[index] for index in each]
                    yield chosen if sizes.list_size else chosen[0]
