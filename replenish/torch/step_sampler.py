"""Positions and passes: the part that all samplers share.

A batch is a pure function of the order and the step, so the state of a sampler is one step. The sampler never guesses
that step: `seek`, `set_epoch` and `load_state_dict` name it, or a pass that was drawn to its end does. See
docs/howto/resume.md for the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

import torch
import torch.distributed
from torch.utils.data import Sampler

from replenish import checks, state
from replenish.locks import ForkSafeLock
from replenish.orders.cursor import Cursor, CursorOrder
from replenish.orders.protocol import Order
from replenish.sharding import check_replicas, check_shares, share_of

Item = TypeVar("Item", int, list[int])

# Indices are converted to lists in groups of this size. Larger groups do not fit the cache and take twice as long.
INDICES_PER_CONVERSION = 8192


class StepSampler(Sampler[Item], Generic[Item]):
    """A sampler over an order: one pass is the rest of an epoch, from the sampler's position to the epoch's end.

    Args:
        order: The samples of every global batch.
        num_replicas: The number of processes; None means torch.distributed's when a pass begins, or 1 without it.
        rank: The number of this process; None means torch.distributed's when a pass begins, or 0 without it.

    Attributes:
        steps_per_epoch: The steps of one epoch.
        ignores_set_epoch: Whether `set_epoch` does nothing. Adapters set it for frameworks whose epoch numbers do not
            count the run's epochs.
        expected_start: If not None, returns the step at which a pass must begin; any other start raises.
    """

    def __init__(self, order: Order, *, num_replicas: int | None, rank: int | None) -> None:
        self.order = order
        self.steps_per_epoch = order.steps_per_epoch
        self._replicas = (num_replicas, rank)
        check_shares(order, self.num_replicas)
        self.ignores_set_epoch = False
        self.expected_start: Callable[[], int] | None = None
        self._lock = ForkSafeLock()
        self._spare_cursor: Cursor | None = None
        self._next: int | None = 0  # the step at which the next pass begins; None if unknown
        self._offset = 0  # how many items of that step the pass skips
        self._latest: Pass[Item] | None = None  # the pass that began last
        self._set_by: str | None = None  # "set_epoch" or "seek" if one was called since that pass began
        self._undrawn = True  # whether nothing was drawn, from any pass, since the position was set
        self._lowest = 0  # the lowest step that `state_dict` accepts: the last one saved, or where the passes began

    def __iter__(self) -> Iterator[Item]:
        return Pass(self)

    @property
    def num_replicas(self) -> int:
        """The number of processes that share each batch."""
        return current_replicas(*self._replicas)[0]

    @property
    def rank(self) -> int:
        """The number of this process."""
        return current_replicas(*self._replicas)[1]

    @property
    def items_per_step(self) -> int:
        """The number of items of a pass in one step on this process."""
        return 1

    @property
    def epoch(self) -> int:
        """The epoch of the latest pass, or of the next one if the position was set since.

        Assigning to it calls `set_epoch`.
        """
        with self._lock.lock:
            step = self._next if self._set_by or self._latest is None else self._latest.start
        return (step or 0) // self.steps_per_epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    @property
    def epoch_set(self) -> int | None:
        """The epoch that `set_epoch` set for the next pass, or None if something else set the position."""
        return self.epoch if self._set_by == "set_epoch" else None

    @property
    def step_drawn(self) -> int:
        """The step after the last one drawn, for loaders that keep it with each batch.

        Raises:
            ValueError: Only part of a step was drawn, or an earlier pass was drawn from since the position was set.
        """
        latest = self._latest
        if latest is None or self._set_by:
            return int(self.state_dict()["step"])
        steps, rest = divmod(latest.drawn, self.items_per_step)
        if rest:
            raise ValueError(
                f"batch_size should be the sampler's share of a step, so that a batch is one step, but {rest} of "
                f"{self.items_per_step} samples of step {latest.start + steps} were drawn"
            )
        return latest.start + steps

    def seek(self, step: int) -> None:
        """Let the next pass begin at `step`, counted from the start of the run. To resume, give the steps trained.

        A pass that is still under way raises at its next item, unless it began at `step` or ends there.
        """
        self._restore(checks.step(step))

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass begin at the start of `epoch`.

        If `seek` or `load_state_dict` restored a step within that epoch, it is kept, and the next pass is the rest of
        the epoch. A pass of another epoch that is still under way raises at its next item: some frameworks call
        `set_epoch` when their workers already have the first batches, which would be of the wrong epoch.

        Raises:
            ValueError: The position was set to a later epoch, and no pass has begun there.
        """
        epoch = checks.integer("epoch", epoch, minimum=0)
        start = checks.step(epoch * self.steps_per_epoch, "the first step of epoch")
        if self.ignores_set_epoch:
            return
        with self._lock.lock:
            if self._set_by and self._next is not None and start <= self._next:
                if self._next < start + self.steps_per_epoch:
                    return
                raise going_back(epoch, self._next // self.steps_per_epoch, self._next, self.steps_per_epoch)
            latest = self._latest
            if latest is not None and not start <= latest.start < start + self.steps_per_epoch:
                latest.overtaken_by = f"set_epoch({epoch})"
            self._next, self._offset, self._set_by, self._undrawn = start, 0, "set_epoch", True

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings, a few hundred bytes for any size of data.

        Args:
            step: The steps trained: `epoch * steps_per_epoch` plus the batches trained in that epoch. None is accepted
                only if nothing was drawn since the position was set, since a loader prefetches.

        Raises:
            ValueError: The step is missing, or is outside the steps drawn.
        """
        with self._lock.lock:
            latest = self._latest
            if step is None:
                if not self._undrawn or self._next is None or self._offset:
                    raise ValueError(
                        "step should be the number of steps trained, since batches were drawn and a loader may have "
                        "prefetched some of them, but got None; call state_dict(step), or use the framework's adapter "
                        "from replenish.integrations"
                    )
                return state.save(self.order, self._next)
            step = checks.step(step)
            if latest is not None and not self._set_by:
                highest = latest.start - (-latest.drawn // self.items_per_step)
                # A loop may leave an epoch early and count all of it as trained.
                if not self._lowest <= step <= highest and step != latest.end:
                    raise not_drawn(step, self._lowest, highest, self.steps_per_epoch)
                self._lowest = step
            elif latest is not None and latest.overtaken_by and self._set_by == "seek" and step != self._next:
                raise ValueError(
                    f"step should be {self._next}, to which the position was set, until a new pass begins, but got "
                    f"{step}; leave the loop over the loader and call iter(loader) again after seek or load_state_dict"
                )
            return state.save(self.order, step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned, also in a run with another number of processes.

        Raises:
            ValueError: The state belongs to another order. The message names the differences.
        """
        self.seek(state.load(self.order, state_dict))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.order!r}, num_replicas={self.num_replicas}, rank={self.rank})"

    def __getstate__(self) -> dict[str, Any]:
        # A copy has a position only if `state_dict()` returns one. Otherwise its first pass raises.
        step = self._next if self._undrawn else None
        return {**vars(self), "_next": step, "_lock": None, "_spare_cursor": None, "_latest": None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved, _lock=ForkSafeLock())

    def _restore(self, step: int, offset: int = 0) -> None:
        with self._lock.lock:
            latest = self._latest
            if latest is not None and step not in (latest.start, latest.end):
                latest.overtaken_by = f"seek({step})"
            self._next, self._offset, self._set_by, self._undrawn = step, offset, "seek", True

    def _begin(self, new: Pass[Item]) -> Iterator[Item]:
        """Set the bounds of a pass at its first item, and return its items."""
        check_shares(self.order, self.num_replicas)  # torch.distributed may have begun since the sampler was made
        with self._lock.lock:
            if self._next is None:
                raise RuntimeError(
                    "the position is unknown, since the last pass was left before its end: call set_epoch(epoch) "
                    "before each pass, or seek(step) with the steps trained"
                )
            new.start, new.drawn = self._next, self._offset
            new.end = (self._next // self.steps_per_epoch + 1) * self.steps_per_epoch
            check_start(new.start, self.expected_start, new.drawn)
            if self._latest is None or not self._latest.exhausted or self._latest.end != new.start:
                self._lowest = new.start
            self._next, self._offset, self._set_by, self._latest = None, 0, None, new
        return islice(self._items(new.start, new.end), new.drawn, None)

    def _finish(self, done: Pass[Item]) -> None:
        """Let the next pass be the next epoch, unless the position was set or another pass began in the meantime."""
        with self._lock.lock:
            done.exhausted = True
            if self._latest is done and self._set_by is None:
                self._next = done.end

    def _items(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the items of the steps from `start` to `stop`: this process's share of each batch, as a list."""
        num_replicas, rank = current_replicas(*self._replicas)
        if not isinstance(self.order, CursorOrder):
            for batch in self.order.batches(start, stop):
                yield batch[share_of(len(batch), num_replicas, rank)].tolist()
            return
        # Passes may run in different threads, so each has its own cursor, which a later pass takes over.
        with self._lock.lock:
            cursor, self._spare_cursor = self._spare_cursor, None
        if cursor is None:
            cursor = self.order.cursor()
        try:
            for block in self.order.blocks(start, stop, cursor):
                share = share_of(block.shape[1], num_replicas, rank)  # a short batch is its own block
                rows = max(1, INDICES_PER_CONVERSION // max(1, block.shape[1]))  # a batch may be empty
                for first in range(0, len(block), rows):
                    yield from block[first : first + rows, share].tolist()
        finally:
            self._spare_cursor = cursor


class Pass(Iterator[Item], Generic[Item]):
    """One pass. It begins at its first item, since a DataLoader with workers makes two iterators and uses one.

    Attributes:
        start: The step at which it began.
        end: The step at which it ends.
        drawn: The number of items drawn since that step.
        exhausted: Whether it was drawn to its end.
        overtaken_by: The call that set the position elsewhere while this pass was under way.
    """

    def __init__(self, sampler: StepSampler[Item]) -> None:
        self.start = self.end = self.drawn = 0
        self.exhausted = False
        self.overtaken_by: str | None = None
        self._sampler: StepSampler[Item] = sampler
        self._lock = ForkSafeLock()
        self._items: Iterator[Item] | None = None

    def __next__(self) -> Item:
        if torch.compiler.is_compiling():  # torch.compile cannot compile numpy's draws
            return torch.compiler.disable(self._draw)()  # type: ignore[no-untyped-call, no-any-return, unused-ignore]
        return self._draw()

    def _draw(self) -> Item:
        with self._lock.lock:
            if self._items is None:
                self._items = self._sampler._begin(self)
            try:
                item = next(self._items)
            except StopIteration:
                if not self.exhausted:
                    self._sampler._finish(self)
                raise
            if self.overtaken_by is not None:
                raise RuntimeError(
                    f"{self.overtaken_by} was called while a pass that began at step {self.start} was under way: call "
                    f"it before iter(loader), or use the adapter from replenish.integrations for the framework that "
                    f"calls it"
                )
            self.drawn += 1
            self._sampler._undrawn = False
            return item

    def __reduce__(self) -> Any:
        raise TypeError("a pass over a sampler cannot be copied or pickled: copy the sampler, or save its state_dict")


def going_back(epoch: int, current: int, step: int, steps_per_epoch: int | None) -> ValueError:
    """Return the error for a `set_epoch` to an epoch that ends before the position that was set."""
    return ValueError(
        f"epoch should be at least {current}, that of step {step}, to which the position was set and where no pass has "
        f"begun, but got {epoch}; resume the loop at epoch step // {steps_per_epoch}, use the framework's adapter from "
        f"replenish.integrations, or call seek(step) to go back"
    )


def not_drawn(step: int, lowest: int, highest: int | None, steps_per_epoch: int | None) -> ValueError:
    """Return the error for a `state_dict` of a step that was not drawn."""
    return ValueError(
        f"step should be from {lowest}, the step saved last or the start of the pass, to {highest}, the steps drawn, "
        f"but got {step}; it is epoch * {steps_per_epoch} + the batches trained in that epoch, counted from the start "
        f"of the run"
    )


def check_start(step: int, expected_start: Callable[[], int] | None, offset: int = 0) -> None:
    """Raise if a pass would not begin at the start of the expected step."""
    if expected_start is not None and (step != expected_start() or offset):
        raise RuntimeError(
            f"the pass would begin at step {step}, but the progress is at step {expected_start()}: add 1 to "
            f"progress.step after every batch trained, and call progress.set_epoch(epoch) before each pass if passes "
            f"are left early"
        )


def current_replicas(num_replicas: int | None, rank: int | None) -> tuple[int, int]:
    """Check and return (num_replicas, rank). None means torch.distributed's value."""
    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if num_replicas is not None and rank is None and not running and num_replicas != 1:
        raise ValueError(
            f"rank should be given with num_replicas={num_replicas!r}, since torch.distributed is not initialised "
            f"and every process would take the share of rank 0, but got rank=None"
        )
    if num_replicas is None:
        num_replicas = torch.distributed.get_world_size() if running else 1
    if rank is None:
        rank = torch.distributed.get_rank() if running else 0
    return check_replicas(num_replicas, rank)
