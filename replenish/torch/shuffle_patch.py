"""Gives an order to loaders that shuffle: chooses these loaders, and the stream of epochs that each draws from."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch.utils.data import DataLoader

from replenish import checks
from replenish.draws import derived_seed
from replenish.orders.building import build_order, check_fittable
from replenish.orders.rebatched import FittedOrder
from replenish.torch.describe import LoaderDescription, describe_loader, describe_sampler
from replenish.torch.epoch_stream import EpochStream, PassSizes, sizes_of
from replenish.torch.loader_hook import LoaderHook, Own
from replenish.torch.loader_record import LoaderRecord


@contextmanager
def using(order: str, *, seed: int = 0, everything: bool = False, **options: Any) -> Iterator[ShufflePatch]:
    """Give an order to every shuffling loader made inside the block, also by Lightning, Accelerate or Transformers.

    A loader shuffles if it has `shuffle=True`, a `RandomSampler` without replacement, a `SubsetRandomSampler`, a
    `DistributedSampler` that shuffles, or a `BatchSampler` over these. The loader keeps its length and its batch
    sizes. Every `iter()` of it draws a new epoch, as with torch's shuffling, also after a pass that was left early and
    while other passes run. A higher `set_epoch` skips epochs. `using` cannot resume; a sampler can.

    Other loaders keep their order, and so do loaders made before the block. Passes that begin with gradients off keep
    torch's order, since an evaluation wants every sample once. At the end, loaders get torch's shuffling back.

    Args:
        order: A name of `replenish.orders.registry.ORDERS`.
        seed: The seed of the first loader trained on; further loaders have seeds derived from it.
        everything: Whether loaders that do not shuffle also get the order.
        **options: Options of the order, such as `pool_size` or `sequence` of SRS.

    Yields:
        The patch; its `records` and `summaries()` report what happened to each loader.

    Raises:
        RuntimeError: At the end, if no loader could get the order.

    Example:
        >>> with using("srs", seed=3) as patch:
        ...     batches = list(DataLoader(range(10), batch_size=4, shuffle=True))
        >>> [len(batch) for batch in batches]
        [4, 4, 2]
        >>> patch.records[0].order, patch.records[0].seed, patch.records[0].passes
        ('srs', 3, 1)
    """
    patch = ShufflePatch(order, seed, options, everything=everything)
    with patch.hook:
        yield patch
    if not any(record.order for record in patch.records):
        found = "; ".join(patch.summaries()) or "no torch DataLoader was made"
        raise RuntimeError(f"using({order!r}) should have a loader that shuffles to give the order to, but {found}")


class ShufflePatch:
    """Gives an order to loaders that shuffle.

    It replaces torch's own shuffling, so every `iter()` of a loader draws an epoch that no other pass has drawn, even
    after passes that were left early and while other passes run. It cannot resume.

    Args:
        order: A name of `replenish.orders.registry.ORDERS`.
        seed: The seed of the first loader trained on; further loaders have seeds derived from it.
        options: Options of the order. Those that are None are ignored.
        everything: Whether loaders that do not shuffle also get the order.
        first_epoch: The epoch of the first pass over each loader.
        changed: Called when a record has changed.
        draws_alone: Returns whether other processes may train at the same time on draws of their own.

    Attributes:
        records: What happened to each loader.
    """

    def __init__(
        self,
        order: str,
        seed: int = 0,
        options: dict[str, Any] | None = None,
        *,
        everything: bool = False,
        first_epoch: int = 0,
        changed: Callable[[], None] = lambda: None,
        draws_alone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.order = order
        self.seed = checks.seed(seed)
        self.options = {name: value for name, value in (options or {}).items() if value is not None}
        self.everything = checks.boolean("everything", everything)
        self.first_epoch = checks.integer("first_epoch", first_epoch, minimum=0)
        self.records: list[LoaderRecord] = []
        self.hook = LoaderHook(self.see)
        self._changed, self._draws_alone = changed, draws_alone
        self._loaders: weakref.WeakKeyDictionary[Any, _ShuffledLoader] = weakref.WeakKeyDictionary()  # by sampler
        self._streams: dict[EpochStream, _ShuffledLoader] = {}  # the loader that now draws from each stream
        self._numbers = {True: itertools.count(), False: itertools.count()}  # of streams, by `is_shared`
        self._events = itertools.count()
        check_fittable(order, self.options)

    def see(self, loader: DataLoader[Any]) -> None:
        """Give the order to a loader that was just made, if it shuffles."""
        found = describe_loader(loader)
        sampler = found.sampler if found.batch_sampler is None else found.batch_sampler
        known = None if found.kind in ("stream", "other") else self._loaders.get(sampler)
        state = _ShuffledLoader(loader, found, next(self._events)) if known is None else known
        state.update(loader, found)  # Accelerate makes another loader around the same batch sampler
        if known is not None:
            return
        sizes = sizes_of(found, state.parts, everything=self.everything)
        if not isinstance(sizes, str):
            self._make_order(sizes, self.seed)  # an order that does not fit fails before the training
            self.hook.replace_iter(sampler, partial(self._draw, state), partial(self._note_pickled, state))
            self._loaders[sampler] = state
        self._add_record(state.record, sizes)

    def remove(self) -> None:
        """Give the loaders their own shuffling back."""
        self.hook.remove()

    def latest_pass(self, sampler: Any) -> tuple[FittedOrder, int, PassSizes] | None:
        """Return the order, the first step and the sizes of the latest pass over a sampler; None if it has no order."""
        streams = (state.stream for known, state in self._loaders.items() if known is sampler)
        return next((stream.latest for stream in streams if stream is not None), None)

    def summaries(self) -> list[str]:
        """Return a line for each loader. Once an order was used, loaders that were never iterated are left out."""
        replaced = any(record.replaced for record in self.records)
        return [record.summary for record in self.records if not (replaced and record.is_unused)]

    def _add_record(self, record: LoaderRecord, sizes: PassSizes | str) -> None:
        if isinstance(sizes, str):
            record.reason, record.num_replicas = sizes, 1
            if any(record.summary == known.summary for known in self.records):  # a script may make it in each epoch
                return
        else:
            shown = {
                name: value if isinstance(value, (int, str)) else f"of {len(value):,}"
                for name, value in self.options.items()
            }
            record.order = ", ".join([self.order, *(f"{name} {value}" for name, value in shown.items())])
            record.num_samples, record.batch_size = sizes.num_samples, sizes.batch_size if sizes.list_size else None
        self.records.append(record)
        self._changed()

    def _draw(self, state: _ShuffledLoader, sampler: Any, own: Own) -> Iterator[Any]:
        """Yield a pass over a sampler. Evaluations, which want every sample once, keep the sampler's own order."""
        found = describe_sampler(sampler)  # again, since frameworks exchange samplers and datasets grow
        sizes = sizes_of(found, state.parts, everything=self.everything)
        if not torch.is_grad_enabled() or isinstance(sizes, str):
            state.record.evaluations += 1
            self._changed()
            yield from own()
            return
        stream = self._stream_for(state)
        epoch_set = getattr(found.sampler, "epoch", 0)  # by `set_epoch`
        yield from stream.draw(sizes, found.indices, int(epoch_set))

    def _note_pickled(self, state: _ShuffledLoader) -> None:
        state.record.pickled = True
        self._changed()

    def _stream_for(self, state: _ShuffledLoader) -> EpochStream:
        """Return the loader's stream of epochs.

        A script may make its loader anew for each epoch. So a loader continues the stream of an earlier one that has
        the same dataset class and batch size, if that one was trained on before this loader was made and has no pass
        under way. Otherwise it gets a new stream.
        """
        if state.stream is not None and self._streams[state.stream] is state:
            return state.stream
        if state.stream is None:
            for stream, before in reversed(list(self._streams.items())):
                in_use = stream.under_way > 0 and before.loader() is not None
                if before.key == state.key and before.first_pass < state.made and not in_use:
                    self.records[:] = [record for record in self.records if record is not state.record]
                    return self._take(state, stream)
        shared = state.is_shared
        number = next(self._numbers[shared])
        seed = self.seed if number == 0 else derived_seed(self.seed, "shared loader" if shared else "loader", number)
        if not shared and (self._draws_alone() or _world_size() > 1):
            # As with torch's own shuffling, processes that do not share batches differ if their torch seeds do.
            seed = derived_seed(seed, torch.initial_seed() & checks.MAX_SEED)
        record = state.record
        if state.stream is not None:  # another loader continued its stream, and both are in use
            record = LoaderRecord(record.dataset, num_replicas=record.num_replicas, order=record.order)
            self.records.append(record)
        record.seed = seed
        stream = EpochStream(lambda sizes: self._make_order(sizes, seed), record, self._changed, self.first_epoch)
        return self._take(state, stream)

    def _take(self, state: _ShuffledLoader, stream: EpochStream) -> EpochStream:
        if state.stream is None:
            state.first_pass = next(self._events)
        state.stream, state.record = stream, stream.record
        self._streams[stream] = state
        return stream

    def _make_order(self, sizes: PassSizes, seed: int) -> FittedOrder:
        order = build_order(self.order, sizes.num_samples, sizes.batch_size, seed=seed, **self.options)
        return FittedOrder(order, sizes.steps, sizes.last_batch_size)


class _ShuffledLoader:
    """A loader, or several that a framework made around one sampler, and the stream that it draws from.

    Attributes:
        loader: A weak reference to the latest of these loaders.
        made: The number of the event at which the first was made.
        first_pass: The number of the event at which it first drew from a stream; -1 before that.
        key: What a loader that continues its stream must have in common with it.
        stream: The stream; None before the first pass.
        record: What happened to it.
        is_shared: Whether several processes share its batches.
        parts: How many processes take its batches in turn.
    """

    def __init__(self, loader: Any, found: LoaderDescription, made: int) -> None:
        self.made = made
        self.first_pass = -1
        self.key = (type(loader.dataset), found.kind, found.batch_size, found.drop_last, found.num_replicas, found.rank)
        self.stream: EpochStream | None = None
        self.record = LoaderRecord(type(loader.dataset).__name__, found.num_samples, found.batch_size)
        self.update(loader, found)

    def update(self, loader: Any, found: LoaderDescription) -> None:
        """Store the latest loader around the sampler, and how it divides batches among processes."""
        self.loader = weakref.ref(loader)
        self.is_shared = found.num_replicas > 1
        wrapped = found.kind != "distributed" and not found.splits_batches
        self.parts = found.num_replicas if wrapped else 1
        self.record.num_replicas = found.num_replicas


def _world_size() -> int:
    """Return the number of processes in the training, from the launcher's variable before torch.distributed runs."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    size = os.environ.get("WORLD_SIZE", "")
    return int(size) if size.isdigit() else 1
