"""What a loader drew, epoch by epoch: indices where there are any, items by their hash where there are none."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from replenish.auditing.untouched import left_as_it_was
from replenish.draws import Int64Array
from replenish.measure.reading import Draws, index_sampler, known_samples, one_pass, reads_a_stream
from replenish.orders.protocol import Order

Key = Callable[[Any], Hashable]


@dataclass(frozen=True, eq=False)
class Record:
    """The batches of some epochs."""

    # For each epoch its batches, as indices or as numbers given to the items of a stream.
    epochs: list[list[Int64Array]]
    num_samples: int  # how many samples there are; of a stream, how many different items came
    is_stream: bool = False  # whether items were told apart by their hash
    # Of a stream, the first item of each number, where labels are asked of them.
    items: list[Any] = field(default_factory=list)
    cut: bool = False  # whether an epoch was longer than what was read

    def draws(self) -> Draws:
        """Return all epochs as one run of steps."""
        batches = [batch for epoch in self.epochs for batch in epoch]
        return Draws(np.concatenate(batches), np.array([len(batch) for batch in batches]), self.num_samples)

    def samples(self, epoch: int) -> Int64Array:
        """Return the samples of an epoch in order."""
        return np.concatenate(self.epochs[epoch])

    def counts(self) -> Int64Array:
        """Return how often each sample came, (epochs, num_samples)."""
        return np.stack(
            [np.bincount(self.samples(epoch), minlength=self.num_samples) for epoch in range(len(self.epochs))]
        )

    @property
    def batch_size(self) -> int:
        """The usual size of a batch."""
        return int(np.median([len(batch) for epoch in self.epochs for batch in epoch]))


def record(
    source: Any,
    epochs: int,
    *,
    before_epoch: Callable[[int], object] | None,
    key: Key | None,
    batch_size: int | None,
    at_most: int,
    items: dict[Hashable, Any],
) -> Record:
    """Read some epochs of a source, and leave it and all random states as they were.

    `items` has the items of streams by their names, in the order in which they were first seen; ranks share it, so that
    one item has one number.
    """
    if isinstance(source, Order):
        starts = [epoch * source.steps_per_epoch for epoch in range(epochs)]
        return Record([list(source.batches(at, at + source.steps_per_epoch)) for at in starts], source.num_samples)
    with left_as_it_was(source):
        if _is_stream(source):

            def numbered() -> Iterator[Int64Array]:
                return _numbered(item_batches(source, batch_size), item_hash if key is None else key, items)

            read, cut = _read(numbered, "item", epochs, before_epoch, at_most)
            return Record(read, len(items), is_stream=True, items=list(items.values()), cut=cut)
        sampler, known = index_sampler(source), known_samples(source) or 0
        read, cut = _read(lambda: one_pass(sampler), "batch", epochs, before_epoch, max(at_most, 4 * known))
        return Record(read, max(known, 1 + max(int(batch.max()) for batches in read for batch in batches)), cut=cut)


def _is_stream(source: Any) -> bool:
    """Say whether a source yields items rather than indices, looking at its first element where nothing else says."""
    if reads_a_stream(source):
        return True
    if any(hasattr(source, name) for name in ("batch_sampler", "data_source", "order")):  # a loader, or a sampler
        return False
    if isinstance(source, Iterator):
        raise TypeError(
            f"loader should be something that can be gone through once an epoch, but got the {type(source).__name__} "
            f"of a single pass: pass what it was made of"
        )
    if not isinstance(source, Iterable):
        raise TypeError(f"loader should be a loader, an Order or an iterable, but got a {type(source).__name__}")
    first = next(iter(source), None)
    if isinstance(first, (list, tuple, np.ndarray)):
        return np.asarray(first, dtype=object).ndim != 1 or not all(isinstance(x, (int, np.integer)) for x in first)
    return not isinstance(first, (int, np.integer))


def _read(
    one_epoch: Callable[[], Iterable[Int64Array]],
    what: str,
    epochs: int,
    before_epoch: Callable[[int], object] | None,
    at_most: int,
) -> tuple[list[list[Int64Array]], bool]:
    """Return the batches of each epoch, of batches or items, and whether one was longer than what was read."""
    read, cut = [], False
    for epoch in range(epochs):
        if before_epoch is not None:
            before_epoch(epoch)
        batches, drawn = [], 0
        for batch in one_epoch():
            batches.append(batch)
            drawn += len(batch)
            if drawn >= at_most:
                cut = True
                break
        if not batches:
            raise ValueError(f"loader should yield at least one {what} an epoch, but got none in epoch {epoch}")
        read.append(batches)
    return read, cut


def _numbered(batches: Iterable[list[Any]], key: Key, items: dict[Hashable, Any]) -> Iterator[Int64Array]:
    """Yield the numbers of the items of a stream, counted as they first come, and put new ones into `items`."""
    numbers = {name: number for number, name in enumerate(items)}
    for batch in batches:
        names = [key(item) for item in batch]
        for name, item in zip(names, batch, strict=True):
            items.setdefault(name, item)
            numbers.setdefault(name, len(numbers))
        yield np.array([numbers[name] for name in names], dtype=np.int64)


def item_batches(source: Any, batch_size: int | None) -> Iterator[list[Any]]:
    """Yield the items of a stream in batches: a loader's own, or `batch_size` at a time."""
    if hasattr(source, "batch_sampler"):  # a loader over an iterable dataset: the same, but with its items kept apart
        batch_size = source.batch_size
        source = loader_class(source)(
            source.dataset,
            batch_size=batch_size,
            drop_last=source.drop_last,
            num_workers=source.num_workers,
            worker_init_fn=source.worker_init_fn,
            collate_fn=as_it_is if batch_size is None else list,
        )
        if batch_size is not None:
            yield from source
            return
    items = iter(source)
    while batch := list(islice(items, batch_size or 1)):
        yield batch


def loader_class(loader: Any) -> Any:
    """Return torch's own DataLoader class, of which a subclass may take other arguments."""
    for kind in type(loader).__mro__:
        if kind.__module__.startswith("torch.utils.data") and kind.__name__ == "DataLoader":
            return kind
    return type(loader)


def as_it_is(item: Any) -> Any:
    """Return what is given, to a loader that is to collate nothing."""
    return item


def item_hash(item: Any) -> bytes:
    """Return a short hash of an item: of its numbers, strings and arrays, however they are nested."""
    state = hashlib.blake2b(digest_size=12)
    _update(state, item)
    return state.digest()


def _update(state: Any, item: Any) -> None:
    if isinstance(item, Mapping):
        state.update(b"{")
        for name in item:
            _update(state, name)
            _update(state, item[name])
    elif isinstance(item, (list, tuple)):
        state.update(b"[%d" % len(item))
        for part in item:
            _update(state, part)
    elif isinstance(item, (str, bytes, int, float, bool, type(None))):
        state.update(repr(item).encode())
    elif hasattr(item, "__array__"):
        array = np.asarray(item)
        state.update(f"{array.dtype}{array.shape}".encode())
        state.update(pickle.dumps(array.tolist()) if array.dtype.hasobject else np.ascontiguousarray(array).tobytes())
    else:
        state.update(pickle.dumps(item))  # written only, never read
    state.update(b"\0")
