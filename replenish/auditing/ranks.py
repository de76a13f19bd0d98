"""Samples that ranks share, or a training and an evaluation; and the records of all ranks joined into one."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.record import Identity, Record
from replenish.draws import Int64Array
from replenish.measure.findings import FAULT, OK, WARNING, Finding
from replenish.measure.reading import Epoch


def joined(records: list[Record]) -> tuple[list[Record], Record]:
    """Return the records of the ranks with one numbering of the samples, and a record of all ranks together.

    Ranks that each have a Subset of one dataset are compared by the samples of that dataset. Every process makes its
    own dataset object, so two objects that may hold the same samples count as one dataset; see `one_dataset_known`.
    """
    records = _in_one_numbering(records)
    passes = []
    for together in zip(*(each.passes for each in records), strict=False):
        batches = [each.batches() for each in together]
        none = np.empty(0, dtype=np.int64)  # ranks may have different numbers of batches
        steps = [np.concatenate(step) for step in zip_longest(*batches, fillvalue=none)]
        passes.append(Epoch.of(steps, whole=all(each.whole for each in together), number=together[0].number))
    return records, replace(max(records, key=lambda each: each.num_samples), passes=passes)


def _in_one_numbering(records: list[Record]) -> list[Record]:
    known = [each.identity for each in records if each.identity is not None]
    if len(known) < len(records) or all(_same_positions(known[0], each) for each in known):
        return records
    sizes = {each.kind: each.root_size for each in known}
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    chosen = [
        starts[each.kind] + (np.arange(each.root_size) if each.samples is None else each.samples) for each in known
    ]
    every = np.unique(np.concatenate(chosen))
    numbered = []
    for record, own in zip(records, chosen, strict=True):
        if any(each.samples.min() < 0 or each.samples.max() >= len(own) for each in record.passes):
            return records  # indices outside the dataset, which coverage reports
        passes = [replace(each, samples=np.searchsorted(every, own[each.samples])) for each in record.passes]
        numbered.append(replace(record, passes=passes, num_samples=len(every), identity=None))
    return numbered


def _same_positions(one: Identity, other: Identity) -> bool:
    if one.kind != other.kind:
        return False
    if one.samples is None or other.samples is None:
        return one.samples is other.samples
    return np.array_equal(one.samples, other.samples)


def one_dataset_known(records: list[Record], claim: Claim) -> bool:
    """Return whether it is known which ranks have the same dataset.

    A sampler that divides positions among processes shows that they have one dataset. Otherwise, datasets whose
    contents are not visible may be copies of one dataset, or different parts of equal length.
    """
    known = [each.identity for each in records if each.identity is not None]
    return claim.replicas > 1 or len({each.root for each in known}) == len({each.kind for each in known})


def batch_counts(records: list[Record]) -> Finding | None:
    """Check whether all ranks have the same number of batches; None if they do."""
    for epoch, together in enumerate(zip(*(each.passes for each in records), strict=False)):
        counts = [len(each.sizes) for each in together]
        if all(each.whole for each in together) and min(counts) < max(counts):
            text = (
                f"The ranks have from {min(counts)} to {max(counts)} batches in epoch {epoch}: with "
                f"DistributedDataParallel the others wait for ever; divide the samples evenly, or use its Join."
            )
            return Finding("ranks", FAULT, text, {"fewest_batches": min(counts), "most_batches": max(counts)})
    return None


def all_equal(records: list[Record]) -> bool:
    """Return whether all ranks draw the same samples in the same order."""
    first = records[0].passes[0].samples
    return all(np.array_equal(first, each.passes[0].samples) for each in records[1:])


def ranks(records: list[Record], claim: Claim) -> Finding:
    """Check whether the ranks divide the samples of an epoch, or several of them draw the same samples."""
    if (uneven := batch_counts(records)) is not None:
        return uneven
    shared = drawn = 0
    number, passes = max(each.num_samples for each in records), min(len(each.passes) for each in records)
    for epoch in range(passes):
        seen = np.stack([_seen(each.passes[epoch].samples, number) for each in records]).sum(axis=0)
        shared += int((seen > 1).sum())
        drawn += int((seen > 0).sum())
    share = shared / drawn
    numbers: dict[str, int | float] = {"ranks": len(records), "shared": share}
    if all_equal(records):
        text = (
            f"All {len(records)} ranks draw the same samples: give each its own rank, by a DistributedSampler, so that "
            f"they divide the data."
        )
        return Finding("ranks", FAULT, text, numbers)
    if shared == 0:
        return Finding("ranks", OK, f"No sample is drawn by two of the {len(records)} ranks in an epoch.", numbers)
    text = f"{share:.2%} of the samples of an epoch are drawn by more than one of the {len(records)} ranks"
    if shared <= len(records) * passes:
        return Finding("ranks", OK, f"{text}: padding, so that all have as many.", numbers)
    if claim.repeats:
        return Finding("ranks", OK, f"{text}: expected, since {claim.name} draws samples more than once.", numbers)
    level = FAULT if share > 0.05 else WARNING
    return Finding("ranks", level, f"{text}: do they shuffle with different seeds?", numbers)


def ranks_of_unknown_data(found: Finding) -> Finding:
    """Return the finding for ranks whose datasets may differ: `ranks` could compare only their positions."""
    text = (
        f"{found.numbers['shared']:.2%} of the positions of an epoch are drawn by more than one of the "
        f"{found.numbers['ranks']} ranks, whose datasets show nothing to compare them by: unless each rank has data of "
        f"its own, divide them by a DistributedSampler. Rank 0 is judged below."
    )
    return Finding("ranks", WARNING, text, found.numbers)


def _seen(samples: Int64Array, number: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.bincount(samples, minlength=number)[:number] > 0


def drawn_samples(record: Record) -> Int64Array:
    """Return the samples that a loader drew, as indices into the root dataset."""
    positions = np.unique(np.concatenate([each.samples for each in record.passes]))
    return positions if record.identity is None else np.unique(record.identity.samples_of(positions))


def leak(trained: Record, other: Record, name: str, level: str) -> Finding | None:
    """Check whether two loaders draw the same samples; None if that cannot be known.

    It compares not positions but the samples of the root dataset, which it finds through `Subset.indices`. A leak gets
    the given level.
    """
    if trained.is_stream != other.is_stream:
        return None
    if not trained.is_stream:
        if trained.identity is None or other.identity is None:
            return None
        if trained.identity.root != other.identity.root:
            text = f"The training and {name} have different datasets; whether those share samples is not asked."
            return Finding("leak", OK, text)
    one, two = drawn_samples(trained), drawn_samples(other)
    both = np.intersect1d(one, two, assume_unique=True)
    numbers: dict[str, int | float] = {"shared": len(both), "samples": len(two)}
    if not len(both):
        return Finding("leak", OK, f"None of the {len(two)} samples of {name} is trained with.", numbers)
    # An evaluation in a script may measure the training on purpose.
    meaning = "its results say nothing about new data" if level == FAULT else "a leak, unless it measures the training"
    text = f"{len(both)} of the {len(two)} samples of {name} are trained with too, such as sample {both[0]}: {meaning}."
    return Finding("leak", level, text, numbers)


def elsewhere(record: Record, others: list[Record]) -> Int64Array | None:
    """Return the positions of a record's dataset that other loaders draw; None if no other loader is over it."""
    identity = record.identity
    if identity is None:
        return None
    drawn = [drawn_samples(each) for each in others if each.identity and each.identity.root == identity.root]
    if not drawn:
        return None
    samples = np.unique(np.concatenate(drawn))
    return samples if identity.samples is None else np.flatnonzero(np.isin(identity.samples, samples))
