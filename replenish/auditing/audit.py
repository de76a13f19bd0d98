"""`audit`: what does a loader really do?"""

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
    """Say what a loader really does, with numbers and a level for each question: ok, warning or fault.

    It iterates over the loader itself, for some epochs. Of a `DataLoader` over a map-style dataset only the indices are
    read; streams are read item by item, and items are identified by a hash. Global random states, random generators of
    the samplers, and their epochs or positions are restored; other state that a sampler keeps is not. To record what a
    script's own loop draws, and change nothing, use the command `replenish audit`.

    Args:
        loader: A torch `DataLoader`, sampler or batch sampler; an `Order`; or an iterable of batches of indices or of
            items, which can be iterated once per epoch. A list of loaders is one for each rank. A dict of loaders by
            name is the training first, then evaluations that should share no sample with it.
        epochs: How many epochs to read.
        labels: One label or length for each sample, or a function of an index (of an item, for streams).
        before_epoch: Called with the epoch before each; `sampler.set_epoch`, if that is what the training does.
        key: For streams, a function of an item that identifies it; default: a hash of all its contents.
        batch_size: For streams that yield single items, how many make a batch.
        call_dataset: Whether the dataset's first sample may be read, a few times, to see if augmentation repeats.
        at_most: How many samples of an epoch are read at most, for streams without end; never less than four times as
            many as the dataset says it has.

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
    first = loader[0] if several else loader  # a list of lists is batches, one of loaders, samplers or orders is ranks
    if records[0].is_stream:  # its items were counted while the others were read
        records = [replace(each, num_samples=len(items), items=list(items.values())) for each in records]
    claim = claim_of(first, records[0].num_samples, records[0].batch_size)
    evaluated = {name: recorded(each, None) for name, each in others.items()}
    record, findings = judge(
        records,
        claim,
        labels,
        elsewhere=elsewhere(records[0], list(evaluated.values())),
    )
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
