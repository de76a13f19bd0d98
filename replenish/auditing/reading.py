"""Reading a loader for some epochs, for `audit` in Python, without any effect on the training that follows."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

import numpy as np

from replenish.auditing.hashing import item_hash
from replenish.auditing.record import Record, identify
from replenish.draws import Int64Array
from replenish.measure.reading import (
    Epoch,
    first_batches,
    index_sampler,
    known_samples,
    one_pass,
    order_epochs,
    reads_a_stream,
)
from replenish.orders.protocol import Order

Key = Callable[[Any], Hashable]


def read(
    source: Any,
    epochs: int,
    *,
    before_epoch: Callable[[int], object] | None,
    key: Key | None,
    batch_size: int | None,
    at_most: int,
    items: dict[Hashable, Any],
) -> Record:
    """Iterate over a source for some epochs, then restore its state as far as possible.

    `items` has the items of streams by their keys, in the order in which they first came. All ranks share it, so that
    an item has the same number in each of them.
    """
    if isinstance(source, Order):
        whole = epochs * source.steps_per_epoch * source.batch_size
        return Record(order_epochs(source, epochs, whole), source.num_samples)
    with preserved_state(source):
        if _is_stream(source):

            def numbered() -> Iterator[Int64Array]:
                return number_items(item_batches(source, batch_size), item_hash if key is None else key, items)

            passes = _read(numbered, "item", epochs, before_epoch, at_most)
            return Record(passes, len(items), is_stream=True, items=list(items.values()))
        sampler, known = index_sampler(source), known_samples(source) or 0
        if before_epoch is None:
            sampler = _from_its_start(source, sampler)
        owner = next((each for each in sampler_chain(source) if isinstance(getattr(each, "epoch", None), int)), None)
        passes = _read(lambda: one_pass(sampler), "batch", epochs, before_epoch, max(at_most, 4 * known), owner)
        number = known or 1 + max(int(each.samples.max()) for each in passes)
        identity = identify(source.dataset) if hasattr(source, "dataset") and hasattr(source, "batch_sampler") else None
        return Record(passes, number, identity=identity, weights=weights_of(source))


def sampler_chain(source: Any) -> list[Any]:
    """Return the batch sampler and the samplers that a loader or sampler draws from, the outermost first."""
    chain: list[Any] = []
    part = _inner(source) if hasattr(source, "dataset") and hasattr(source, "batch_sampler") else source
    while part is not None and not any(part is known for known in chain):
        chain.append(part)
        part = _inner(part)
    return chain


def _inner(part: Any) -> Any:
    found = getattr(part, "batch_sampler", None)
    return getattr(part, "sampler", None) if found is None else found


def _from_its_start(source: Any, sampler: Any) -> Any:
    """Return the sampler to read: a copy at step 0 if it contains one of this library's, otherwise itself."""
    chain = sampler_chain(sampler)
    if not any(hasattr(each, "seek") for each in chain):
        return sampler
    data = [getattr(each, name, None) for each in (source, *chain) for name in ("dataset", "data_source")]
    copied = copy.deepcopy(sampler, {id(each): each for each in data if each is not None})
    for each in sampler_chain(copied):
        if hasattr(each, "seek"):
            each.seek(0)
    return copied


def weights_of(source: Any) -> Any:
    """Return the weights of a sampler that draws by weights, or None."""
    weights = getattr(sampler_chain(source)[-1], "weights", None)
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    return values if values.ndim == 1 else None


def _is_stream(source: Any) -> bool:
    """Return whether a source yields items rather than indices; read its first element if nothing else shows it."""
    if reads_a_stream(source):
        return True
    if any(hasattr(source, name) for name in ("batch_sampler", "data_source", "order")):  # a loader, or a sampler
        return False
    if isinstance(source, Iterator):
        raise TypeError(
            f"loader should be something that can be iterated once per epoch, but got the {type(source).__name__} "
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
    owner: Any = None,
) -> list[Epoch]:
    """Return the passes, each cut off at `at_most` samples; `owner` is the sampler with an `epoch`, if any."""
    passes = []
    for epoch in range(epochs):
        if before_epoch is not None:
            before_epoch(epoch)
        found = first_batches(one_epoch(), at_most, getattr(owner, "epoch", None))
        if found is None:
            raise ValueError(f"loader should yield at least one {what} per epoch, but got none in epoch {epoch}")
        passes.append(found)
    return passes


def number_items(batches: Iterable[list[Any]], key: Key, items: dict[Hashable, Any]) -> Iterator[Int64Array]:
    """Yield the numbers of the items of a stream, in the order of first appearance; add new items to `items`."""
    numbers = {name: number for number, name in enumerate(items)}
    for batch in batches:
        names = [key(item) for item in batch]
        for name, item in zip(names, batch, strict=True):
            items.setdefault(name, item)
            numbers.setdefault(name, len(numbers))
        yield np.array([numbers[name] for name in names], dtype=np.int64)


def item_batches(source: Any, batch_size: int | None) -> Iterator[list[Any]]:
    """Yield the items of a stream in batches: a loader's own, or `batch_size` at a time."""
    if hasattr(source, "batch_sampler"):  # a loader over an iterable dataset: make one that does not collate
        from torch.utils.data import DataLoader

        batch_size = source.batch_size
        source = DataLoader(  # the loader's own class may take other arguments
            source.dataset,
            batch_size=batch_size,
            drop_last=source.drop_last,
            num_workers=source.num_workers,
            worker_init_fn=source.worker_init_fn,
            collate_fn=uncollated if batch_size is None else list,
        )
        if batch_size is not None:
            yield from source
            return
    items = iter(source)
    while batch := list(islice(items, batch_size or 1)):
        yield batch


def uncollated(item: Any) -> Any:
    """Return the argument: the `collate_fn` of a loader that collates nothing."""
    return item


@contextmanager
def preserved_state(loader: Any) -> Iterator[None]:
    """Restore global random states at the end, and the generators and epochs of a loader's samplers and dataset."""
    with ExitStack() as undo:
        undo.callback(random.setstate, random.getstate())
        undo.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002  # the user's global state, not ours
        if (torch := sys.modules.get("torch")) is not None:  # otherwise nothing has drawn from it
            undo.callback(torch.set_rng_state, torch.get_rng_state())
        parts = (loader, getattr(loader, "dataset", None), *sampler_chain(loader))
        for part in {id(each): each for each in parts}.values():
            for value in getattr(part, "__dict__", {}).values():
                _restore_generator(value, undo)
            # Of this library's samplers, which have a `seek`, a copy is read.
            if (
                isinstance(getattr(part, "epoch", None), int)
                and hasattr(part, "set_epoch")
                and not hasattr(part, "seek")
            ):
                undo.callback(part.set_epoch, part.epoch)
        yield


def _restore_generator(value: Any, undo: ExitStack) -> None:
    """Have a random generator restored at the end; ignore any other value."""
    if isinstance(value, random.Random):
        undo.callback(value.setstate, value.getstate())
    elif isinstance(value, np.random.Generator):
        undo.callback(setattr, value.bit_generator, "state", value.bit_generator.state)
    elif hasattr(value, "get_state") and hasattr(value, "set_state"):  # torch's, and numpy's RandomState
        undo.callback(value.set_state, value.get_state())
