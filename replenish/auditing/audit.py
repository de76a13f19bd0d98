"""`audit`: report what a loader really does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from replenish import checks
from replenish.auditing.claims import claim_of
from replenish.auditing.coverage import coverage
from replenish.auditing.epochs import batch_sizes
from replenish.auditing.judge import Audit, judge, subject
from replenish.auditing.labels import Labels
from replenish.auditing.probes import augmentation, resuming
from replenish.auditing.ranks import elsewhere, leak
from replenish.auditing.reading import Key, read
from replenish.auditing.record import Record
from replenish.measure.findings import FAULT, Finding
from replenish.orders.protocol import Order


def audit(
    loader: Any,
    epochs: int = 3,
    labels: Labels | None = None,
    *,
    before_epoch: Callable[[int], object] | None = None,
    key: Key | None = None,
    batch_size: int | None = None,
    call_dataset: bool = True,
    at_most: int = 2**22,
) -> Audit:
    """Report what a loader really does: a finding per question, with a level (ok, warning or fault) and numbers.

    It iterates over the loader for some epochs. From a `DataLoader` over a map-style dataset it reads only the indices.
    It reads streams item by item, and identifies each item by a hash. At the end it restores global random states, the
    samplers' random generators, and their epochs or positions, but no other state of a sampler. To record what a
    script's own loop draws, without any change to it, use the command `replenish audit`.

    Args:
        loader: A torch `DataLoader`, sampler or batch sampler; an `Order`; or an iterable of batches of indices or of
            items that can be iterated once per epoch. A list has one loader for each rank. A dict has loaders by name:
            first the training's, then those of evaluations, which should not share samples with it.
        epochs: How many epochs to read.
        labels: One label or length for each sample, or a function of an index (of an item, for streams).
        before_epoch: A function called with the epoch's number before each epoch, such as `sampler.set_epoch`.
        key: For streams, a function that returns what identifies an item; default: a hash of all its contents.
        batch_size: For streams that yield single items, how many make a batch.
        call_dataset: Whether the audit may read the dataset's first sample, a few times, to see if augmentation
            repeats.
        at_most: The largest number of samples to read per epoch, for streams without end. For a dataset with a length
            the limit is at least four times that length.

    Example:
        >>> from replenish import RandomReshuffling
        >>> audit(RandomReshuffling(1000, 10)).level
        'ok'
    """
    epochs = checks.integer("epochs", epochs, minimum=2)
    at_most = checks.integer("at_most", at_most, minimum=1)
    if batch_size is not None:
        batch_size = checks.integer("batch_size", batch_size, minimum=1)
    items: dict[Hashable, Any] = {}

    def recorded(source: Any, before: Callable[[int], object] | None = before_epoch) -> Record:
        return read(source, epochs, before_epoch=before, key=key, batch_size=batch_size, at_most=at_most, items=items)

    others: dict[str, Any] = {}
    if isinstance(loader, Mapping):
        if len(loader) < 2:
            raise ValueError(
                f"loader should be at least two loaders by name, the training first, but got {list(loader)}"
            )
        (_, loader), *rest = loader.items()
        others = dict(rest)
    ranks = [_is_loader(each) for each in loader] if isinstance(loader, (list, tuple)) else []
    several = any(ranks)
    if several and not all(ranks):
        kind = type(loader[ranks.index(False)]).__name__
        raise TypeError(f"loader should be a list of loaders only, but got a {kind} among them")
    records = [recorded(each) for each in loader] if several else [recorded(loader)]
    first = loader[0] if several else loader  # a list of lists is batches; a list of loaders or orders is ranks
    if records[0].is_stream:  # later ranks may have added items
        records = [replace(each, num_samples=len(items), items=list(items.values())) for each in records]
    claim = claim_of(first, records[0].num_samples, records[0].batch_size)
    evaluated = {name: recorded(each, None) for name, each in others.items()}
    record, findings = judge(records, claim, labels, elsewhere=elsewhere(records[0], list(evaluated.values())))
    if record.is_stream:
        findings += _kept(resuming(first, key, at_most))
    elif checks.boolean("call_dataset", call_dataset):
        findings += _kept(resuming(first, key, at_most), augmentation(first))
    for name, other in evaluated.items():
        promised = claim_of(others[name], other.num_samples, other.batch_size)
        shared = elsewhere(other, [*records, *(each for each in evaluated.values() if each is not other)])
        found = [leak(record, other, name, FAULT), coverage(other, promised, shared), batch_sizes(other)]
        findings += [replace(each, name=f"{name}: {each.name}") for each in _kept(*found)]
    return Audit(subject(_name(first, claim.name, record), record), tuple(findings))


def _is_loader(source: Any) -> bool:
    return isinstance(source, Order) or hasattr(source, "batch_sampler") or hasattr(source, "set_epoch")


def _kept(*findings: Finding | None) -> list[Finding]:
    return [each for each in findings if each is not None]


def _name(loader: Any, claimed: str, record: Record) -> str:
    of_stream = record.is_stream and hasattr(loader, "dataset")
    name, inner = type(loader).__name__, type(loader.dataset).__name__ if of_stream else claimed
    return name if name == inner else f"{name} ({inner})"
