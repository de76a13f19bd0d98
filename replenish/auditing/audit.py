"""`audit`: what does a loader really do?"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from replenish import checks
from replenish.auditing.augmentation import augmentation
from replenish.auditing.claims import Claim, claim_of
from replenish.auditing.coverage import batch_sizes, coverage, joined, ranks, repetition
from replenish.auditing.findings import Audit, Finding
from replenish.auditing.gaps import gaps
from replenish.auditing.mixing import Labels, label_mixing
from replenish.auditing.noise import noise
from replenish.auditing.record import Key, Record, record
from replenish.auditing.resuming import resuming
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
    """Say what a loader really does, with numbers and a verdict for each question.

    It goes through the loader for some epochs. Of a `DataLoader` over a map-style dataset only the indices are read;
    streams are read item by item and known by the hash of an item. Random states, and the positions of samplers, are
    put back. It asks: do all samples come, and how often; is every epoch another; are batches of one size; are labels
    mixed; how long are the gaps between visits; is the noise that of the sampler's law; does augmentation repeat
    between workers or epochs; do ranks draw different samples; does a stream resume where it was.

    Args:
        loader: A torch `DataLoader`, sampler or batch sampler; an `Order`; an iterable of batches of indices or of
            items, which can be gone through once an epoch; or a list of loaders, one for each rank.
        epochs: How many epochs to go through.
        labels: One label or length for each sample, or a function of an index (of an item, for streams).
        before_epoch: Called with the epoch before each; `sampler.set_epoch`, if that is what the training does.
        key: For streams, a function of an item that names it; default: a hash of all that is in it.
        batch_size: For streams that yield single items, how many make a batch.
        call_dataset: Whether the dataset's first sample may be read, some times, to see if augmentation repeats.
        at_most: How many samples of an epoch are read at most, for streams without end; never less than four times as
            many as the dataset says it has.

    Example:
        >>> from replenish import RandomReshuffling
        >>> audit(RandomReshuffling(1000, 10)).verdict
        'fine'
    """
    epochs = checks.integer("epochs", epochs, minimum=2)
    at_most = checks.integer("at_most", at_most, minimum=1)
    if batch_size is not None:
        batch_size = checks.integer("batch_size", batch_size, minimum=1)
    items: dict[Hashable, Any] = {}

    def recorded(source: Any) -> Record:
        return record(
            source, epochs, before_epoch=before_epoch, key=key, batch_size=batch_size, at_most=at_most, items=items
        )

    # A list of lists is batches, one of loaders, samplers or orders is ranks.
    several = isinstance(loader, (list, tuple)) and loader
    if several and all(
        isinstance(each, Order) or hasattr(each, "batch_sampler") or hasattr(each, "set_epoch") for each in loader
    ):
        records = [recorded(each) for each in loader]
        read, first = joined(records), loader[0]
        claim = claim_of(first, read.num_samples, read.batch_size)
        findings: list[Finding | None] = [ranks(records, claim)]
        claim = replace(claim, replicas=1, law=None)  # together they have all samples; the law is of one's batches
    else:
        read, first, findings = recorded(loader), loader, []
        claim = claim_of(loader, read.num_samples, read.batch_size)
    findings += [coverage(read, claim), repetition(read, claim, before_epoch is not None), batch_sizes(read)]
    if labels is not None:
        findings.append(label_mixing(read, labels, claim.copies))
    findings += [gaps(read), noise(read, claim)]
    if read.is_stream:
        findings.append(resuming(first, key, at_most))
    elif checks.boolean("call_dataset", call_dataset):
        findings.append(augmentation(first))
    return Audit(_subject(first, claim, read), tuple(found for found in findings if found is not None))


def _subject(loader: Any, claim: Claim, read: Record) -> str:
    of_stream = read.is_stream and hasattr(loader, "dataset")
    name, inner = type(loader).__name__, type(loader.dataset).__name__ if of_stream else claim.name
    shown = name if name == inner else f"{name} ({inner})"
    what = "items" if read.is_stream else "samples"
    return f"{shown}, {read.num_samples} {what}, batches of {read.batch_size}, {len(read.epochs)} epochs"
