"""An order in the place of shuffling: which loaders get it, and whose stream each of them goes on with."""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler

from replenish import checks
from replenish.draws import derived_seed
from replenish.orders.fitted import FittedOrder, check_fittable
from replenish.orders.registry import build_order
from replenish.torch.batch_samplers import OrderBatchSampler
from replenish.torch.loader_draws import IndexSampler, LoaderShape, ShuffledDraws, draws_of
from replenish.torch.loader_record import LoaderRecord, Place

#: Told of a record's number and the record, when it is made and whenever it changes.
Tell = Callable[[int, LoaderRecord], None]


class Replacement:
    """An order that takes the place of shuffling in loaders, by its name in `ORDERS`; one seed is for all of them.

    An option that is None is as not given. `tell` is told of every record when it is made or changes; `apart` tells
    whether others may train beside the process that asks, each of which draws for itself.
    """

    def __init__(
        self,
        order: str,
        seed: int,
        options: dict[str, Any],
        tell: Tell | None = None,
        apart: Callable[[], bool] = lambda: False,
    ) -> None:
        self.order = order
        self.seed = checks.seed(seed)
        self.options = {name: value for name, value in options.items() if value is not None}
        self.records: list[LoaderRecord] = []
        self._tell = tell
        self._apart = apart
        self._streams: list[Stream] = []
        check_fittable(order, self.options)

    def index_sampler(self, loader: DataLoader[Any], own: IndexSampler, place: Place) -> IndexSampler:
        """Return what a loader is to iterate instead of `own`, which is that itself if it does not shuffle."""
        if type(own).__name__ == "_RepeatSampler":  # timm's and ultralytics' have one, around the batches of all epochs
            again = copy.copy(own)
            again.sampler = self.index_sampler(loader, own.sampler, place)
            return again
        draws = draws_of(own, loader.dataset)
        if isinstance(draws, str):
            self._leave_alone(loader, draws, place)
            return own
        return OrderedIndices(own, draws, self._stream(loader, draws, place))

    def change(self, record: LoaderRecord, **changes: Any) -> None:
        """Change a record, and tell of it if that is new."""
        if any(getattr(record, name) != value for name, value in changes.items()):
            vars(record).update(changes)
            self._told(record)

    def _told(self, record: LoaderRecord) -> None:
        if self._tell is not None:
            self._tell(next(n for n, known in enumerate(self.records) if known is record), record)

    def _leave_alone(self, loader: DataLoader[Any], reason: str, place: Place) -> None:
        try:
            length: int | None = len(loader.dataset)  # type: ignore[arg-type]
        except (TypeError, NotImplementedError):
            length = None
        batch_size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
        record = LoaderRecord(place.line, length, batch_size, reason=reason)
        # One that is made in every epoch, or by a framework out of the script's own, is said once.
        alike = [replace(known, place=place.line) if place.in_framework else known for known in self.records]
        if record not in alike:
            self.records.append(record)
            self._told(record)

    def _stream(self, loader: DataLoader[Any], draws: ShuffledDraws, place: Place) -> Stream:
        """Return the stream of a loader that this one goes on from, or a new one.

        A framework makes a loader anew out of the script's; a script may make one in every epoch, at the same line.
        Two loaders over the same data that are used side by side have streams of their own.
        """
        earlier = [stream for stream in self._streams if stream.dataset() is loader.dataset]
        if not place.in_framework:
            earlier = [stream for stream in earlier if stream.place == place.line and stream.record.trained]
        before = earlier[-1] if earlier else None
        if before is not None and before.shape == draws.shape:
            return before
        shared = draws.shape.num_replicas > 1
        if before is None:
            number = 1 + max((stream.number for stream in self._streams if stream.shared == shared), default=-1)
        else:
            number = before.number
            self.change(before.record, rebuilt=not before.record.trained)
        line = place.line if before is None else before.place
        shape = draws.shape
        record = LoaderRecord(line, shape.num_samples, shape.batch_size, shape.num_replicas, self._described())
        stream = Stream(loader.dataset, shape, number, self, record)
        self._streams.append(stream)
        self.records.append(record)
        self._told(record)
        return stream

    def _described(self) -> str:
        given = "".join(f", {name} {_short(value)}" for name, value in self.options.items())
        return f"{self.order}{given}, seed {self.seed}"

    def sampler(self, shape: LoaderShape, number: int) -> OrderBatchSampler:
        """Return the order's batches in the sizes of loader `number`."""
        # Loaders of several processes are numbered apart: a process may have loaders that the others have not.
        seed = derived_seed(self.seed, "shared loader" if shape.num_replicas > 1 else "loader", number)
        if shape.num_replicas == 1 and (self._apart() or _world_size() > 1):
            # Every process draws for itself: as with torch's shuffling, the same as those whose torch seed is the same.
            seed = derived_seed(seed, torch.initial_seed() & checks.MAX_SEED)
        order = build_order(self.order, shape.num_samples, shape.batch_size, seed=seed, **self.options)
        fitted = FittedOrder(order, shape.steps, shape.last_batch_size)
        return OrderBatchSampler(fitted, num_replicas=shape.num_replicas, rank=shape.rank)


class Stream:
    """The batches that one loader draws, or several of which each goes on where the one before ended."""

    def __init__(
        self, dataset: object, shape: LoaderShape, number: int, replacement: Replacement, record: LoaderRecord
    ) -> None:
        self.shape = shape
        self.number = number
        self.shared = shape.num_replicas > 1
        self.record = record
        self.place = record.place
        self.sampler = replacement.sampler(shape, number)
        self._epoch_set = 0
        self._replacement = replacement
        try:
            self.dataset: Callable[[], object] = weakref.ref(dataset)
        except TypeError:  # lists and ranges have no weak references
            self.dataset = lambda: dataset

    def begin(self, epoch: int | None) -> None:
        """Begin a pass: at `epoch` if the script has set another since the last pass, else where that ended."""
        if epoch is not None and epoch != self._epoch_set:
            self.sampler.set_epoch(epoch)
            self._epoch_set = epoch
        self._replacement.change(self.record, trained=True)

    def evaluate(self) -> None:
        """Record a pass that keeps torch's own order."""
        self._replacement.change(self.record, evaluated=True)


class OrderedIndices(Sampler[Any]):
    """What a loader iterates in place of the sampler of its own, which still says how long it is and which epoch.

    A pass that begins with gradients switched off is an evaluation, which wants every sample once: it is the loader's
    own shuffling, whatever the order.
    """

    def __init__(self, own: IndexSampler, draws: ShuffledDraws, stream: Stream) -> None:
        self.own = own
        self.stream = stream
        self.draws = draws
        self._length = len(own)
        self._ordered = draws.wrap(stream.sampler)

    def __len__(self) -> int:
        return len(self.own)

    def __iter__(self) -> Iterator[Any]:
        if not torch.is_grad_enabled():
            self.stream.evaluate()
            return iter(self.own)
        if len(self.own) != self._length:
            raise RuntimeError(
                f"a dataset should keep its length while an order draws from it, but the loader made at "
                f"{self.stream.place} had {self._length} steps an epoch and now has {len(self.own)}"
            )
        self.stream.begin(getattr(self.draws.sampler, "epoch", None))
        if self.draws.by_index:
            return (index for (index,) in self._ordered)
        return iter(self._ordered)

    def state_dict(self) -> dict[str, int | str]:
        """Return the order's position, which torchdata's StatefulDataLoader saves."""
        return self.stream.sampler.state_dict()

    def load_state_dict(self, state_dict: dict[str, int | str]) -> None:
        """Go to a position that `state_dict` returned."""
        self.stream.sampler.load_state_dict(state_dict)


def _short(value: Any) -> Any:
    """Return an option as it is said of a loader: of an array its length."""
    return value if isinstance(value, (int, str)) else f"of {len(value):,}"


def _world_size() -> int:
    """Return how many processes the training has, also where they have not yet met."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    told = os.environ.get("WORLD_SIZE", "")
    return int(told) if told.isdigit() else 1
