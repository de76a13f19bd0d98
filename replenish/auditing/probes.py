"""Probes that read the dataset or a copy of the sampler: augmentation that repeats, and states that do not resume."""

from __future__ import annotations

import copy
from itertools import islice
from typing import Any

from replenish.auditing.hashing import item_hash
from replenish.auditing.reading import Key, preserved_state, sampler_chain, uncollated
from replenish.measure.findings import FAULT, OK, WARNING, Finding

_CALLS = 3  # per worker


class Probe:
    """A dataset that returns the hash of the first sample for every index."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, index: int) -> bytes:
        return item_hash(self.dataset[0])


def augmentation(loader: Any) -> Finding | None:
    """Read the dataset's first sample several times, here and in the loader's workers; None without a dataset."""
    dataset: Any = getattr(loader, "dataset", None)
    if not hasattr(dataset, "__getitem__") or not hasattr(loader, "num_workers"):
        return None
    with preserved_state(loader):
        try:
            here = {item_hash(dataset[0]) for _ in range(4)}
        except Exception as error:  # whatever a user's dataset raises
            text = f"Not known: dataset[0] raised {type(error).__name__}: {error}"
            return Finding("augmentation", WARNING, text, {})
        if len(here) == 1:
            return Finding(
                "augmentation", OK, "The first sample is the same each time: there is no random augmentation.", {}
            )
        if loader.num_workers == 0:
            return Finding("augmentation", OK, "The first sample differs each time: augmentation is random.", {})
        workers, passes = loader.num_workers, []
        from torch.utils.data import DataLoader

        first_sample: Any = Probe(dataset)
        probe = DataLoader(
            first_sample,
            batch_size=None,
            sampler=range(_CALLS * workers),
            num_workers=workers,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            persistent_workers=loader.persistent_workers,
            collate_fn=uncollated,
        )
        for _ in range(2):
            drawn = list(probe)  # the loader gives the indices to its workers by turns
            passes.append([tuple(drawn[worker::workers]) for worker in range(workers)])
    numbers: dict[str, int | float] = {"workers": workers}
    if workers > 1 and len(set(passes[0])) < workers:
        text = (
            f"Workers augment alike: distinct random streams in {workers} workers: {len(set(passes[0]))}. Seed each by "
            f"torch.initial_seed(), not with the same number."
        )
        return Finding("augmentation", FAULT, text, numbers)
    if set(passes[0]) & set(passes[1]):
        text = (
            "Augmentation repeats in every epoch: workers begin each time with the same random state; make the "
            "generator in the worker, or seed it by torch.initial_seed()."
        )
        return Finding("augmentation", FAULT, text, numbers)
    return Finding("augmentation", OK, f"Augmentation is random and differs between the {workers} workers.", numbers)


def resuming(source: Any, key: Key | None, at_most: int) -> Finding | None:
    """Read half an epoch, resume from the `state_dict` and compare; None if neither stream nor sampler has one."""
    stream = getattr(source, "dataset", source)
    if _has_state(stream) and hasattr(stream, "__iter__") and not hasattr(stream, "seek"):
        return _stream(source, stream, key, at_most)
    # This library's samplers, which have `seek`, get the step from the training, so they cannot lose it.
    sampler = next((each for each in sampler_chain(source) if _has_state(each) and not hasattr(each, "seek")), None)
    return None if sampler is None or hasattr(sampler, "batch_sampler") else _sampler(source, sampler)


def _has_state(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def _stream(source: Any, stream: Any, key: Key | None, at_most: int) -> Finding | None:
    name = item_hash if key is None else key
    with preserved_state(source):
        length = sum(1 for _ in islice(stream, at_most))
        if length == at_most or length < 4:
            return None
        items = iter(stream)
        before = [name(item) for item in islice(items, length // 2)]
        state = stream.state_dict()
        rest = [name(item) for item in items]
        stream.load_state_dict(state)
        resumed = [name(item) for item in stream]
    return _compare(before, rest, resumed, "the stream", "items", "its shuffle buffer is not in its state")


def _sampler(source: Any, sampler: Any) -> Finding | None:
    """Resume a copy of a sampler as torchdata does: from its iterator's state if that has one, else from its own."""
    data = [getattr(part, name, None) for part in (source, sampler) for name in ("dataset", "data_source")]
    shared = {id(each): each for each in data if each is not None}  # not copied with the sampler
    with preserved_state(source):
        try:
            one, other = (copy.deepcopy(sampler, dict(shared)) for _ in range(2))
        except Exception:  # a user's sampler may hold something that cannot be copied
            return None
        length = sum(1 for _ in copy.deepcopy(sampler, dict(shared)))
        indices = iter(one)
        before = [repr(each) for each in islice(indices, length // 2)]
        by_iterator = _has_state(indices)
        state = copy.deepcopy((indices if by_iterator else one).state_dict())
        rest = [repr(each) for each in indices]
        if by_iterator:
            again = iter(other)
            again.load_state_dict(state)
        else:
            other.load_state_dict(state)
            again = iter(other)
        resumed = [repr(each) for each in again]
    name = type(sampler).__name__
    return None if length < 4 else _compare(before, rest, resumed, name, "draws", "its place is not in its state")


def _compare(before: list[Any], rest: list[Any], resumed: list[Any], who: str, what: str, why: str) -> Finding:
    lost, again = len(set(rest) - set(resumed)), len(set(resumed) & set(before) - set(rest))
    numbers: dict[str, int | float] = {"lost": lost, "again": again}
    if resumed == rest:
        return Finding("resuming", OK, f"Resumed in the middle of an epoch, {who} continues exactly.", numbers)
    if lost or again:
        text = (
            f"Resumed in the middle of an epoch, {who} leaves out {lost} of the {len(rest)} {what} that were to come "
            f"and repeats {again}: {why}."
        )
        return Finding("resuming", FAULT, text, numbers)
    text = f"Resumed in the middle of an epoch, {who} has the same {what} left, in another order."
    return Finding("resuming", WARNING, text, numbers)
