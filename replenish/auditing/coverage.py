"""Coverage: samples that an epoch leaves out or repeats, and indices outside the dataset."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from replenish.auditing.claims import Claim
from replenish.auditing.record import Record
from replenish.draws import Int64Array
from replenish.measure.findings import FAULT, OK, WARNING, Finding

Booleans = NDArray[np.bool_]


def coverage(record: Record, claim: Claim, elsewhere: Int64Array | None = None, ranks: int = 1) -> Finding:
    """Check which samples an epoch leaves out or repeats, and whether they are the same in every epoch.

    `elsewhere` has the positions of this dataset that other loaders draw; the record joins so many `ranks`.
    """
    for problem in (_outside(record), _duplicates(record, claim), _not_whole(record, claim)):
        if problem is not None:
            return problem
    counts = record.counts()
    what = "items" if record.is_stream else "samples"
    unseen, again = counts == 0, counts > 1
    numbers: dict[str, int | float] = {
        what: counts.shape[1],
        "unseen_in_an_epoch": float(unseen.sum(axis=1).mean()),
        "more_than_once_in_an_epoch": float(again.sum(axis=1).mean()),
        "never_seen": int(unseen.all(axis=0).sum()),
    }
    if record.is_stream and len(counts) > 1 and unseen.any(axis=0).all():
        level, text = (
            WARNING,
            (
                "No item came in every epoch: items that are changed at random look new each time; pass key=... to say "
                "what identifies an item."
            ),
        )
    elif claim.replicas > 1:
        level, text = OK, _share(counts, claim, ranks)
    elif unseen.any() and not again.any():
        level, text = _left_out(record, claim, unseen, elsewhere, what)
    elif not unseen.any() and (counts == counts[:1]).all():
        level, text = _alike(counts[0], record, claim, what)
    elif unseen.any() or claim.repeats:
        level, text = _replacement(record, claim, unseen, again, what)
    else:
        mean = numbers["more_than_once_in_an_epoch"]
        level, text = OK, f"{mean:.0f} {what} come twice in an epoch, others each time: padding."
    return Finding("coverage", level, text, numbers)


def _share(counts: Int64Array, claim: Claim, ranks: int) -> str:
    share = float((counts > 0).sum(axis=1).mean())
    seen = f"{share:.0f} of the {counts.shape[1]} samples in an epoch"
    if ranks > 1:
        return f"{ranks} ranks of {claim.replicas} see {seen}; the others were not audited."
    return (
        f"One rank of {claim.replicas} sees {seen}; audit all ranks together, as audit([loader_0, loader_1]), to know "
        f"the rest."
    )


def _outside(record: Record) -> Finding | None:
    samples = np.concatenate([each.samples for each in record.passes])
    if record.is_stream or (samples.min() >= 0 and samples.max() < record.num_samples):
        return None
    worst = int(samples.max() if samples.max() >= record.num_samples else samples.min())
    outside = np.unique(samples[(samples < 0) | (samples >= record.num_samples)])
    text = (
        f"{len(outside)} indices are outside the dataset's {record.num_samples} samples, such as {worst}: the sampler "
        f"was made for another dataset."
    )
    return Finding("coverage", FAULT, text, {"outside": len(outside)})


def _duplicates(record: Record, claim: Claim) -> Finding | None:
    """Find samples that a Subset lists twice, or that a sampler without repeats draws twice in an epoch."""
    chosen = None if record.identity is None else record.identity.samples
    if chosen is not None:
        values, times = np.unique(chosen, return_counts=True)
        if (twice := values[times > 1]).size:
            text = (
                f"{len(twice)} samples are more than once in Subset.indices, such as sample {twice[0]} "
                f"({times.max()} times at most): each counts as often as it is listed."
            )
            return Finding("coverage", FAULT, text, {"duplicates": len(twice)})
    if claim.repeats is not False or record.is_stream or claim.replicas > 1:
        return None
    again = [np.unique(each.samples, return_counts=True)[1] > 1 for each in record.passes]
    worst = max(int(each.sum()) for each in again)
    if not worst:
        return None
    text = f"{worst} samples come more than once in an epoch, though {claim.name} should draw each once."
    return Finding("coverage", FAULT, text, {"more_than_once_in_an_epoch": worst})


def _not_whole(record: Record, claim: Claim) -> Finding | None:
    """Report what is known if no pass reached its end; None if one did."""
    if record.whole_passes:
        return None
    drawn = len(np.unique(np.concatenate([each.samples for each in record.passes])))
    total = sum(len(each.samples) for each in record.passes)
    known = "" if record.is_stream or claim.replicas > 1 else f" of {record.num_samples}"
    number = len(record.passes)
    text = (
        f"No pass reached its end: {total} draws in {number} {'pass' if number == 1 else 'passes'} had {drawn}{known} "
        f"different {'items' if record.is_stream else 'samples'}, so what a whole epoch has is not known."
    )
    return Finding("coverage", OK, text, {"seen": drawn})


def _alike(counts: Int64Array, record: Record, claim: Claim, what: str) -> tuple[str, str]:
    """Judge epochs that leave out no sample, and draw each sample equally often in every epoch."""
    number, least, most = len(counts), counts.min(), counts.max()
    if most == 1:
        return OK, f"Every one of the {number} {what} comes once in every epoch."
    if record.is_stream and least == most == claim.workers:
        return FAULT, (
            f"Every item comes {claim.workers} times in every epoch, once from each worker: divide the stream among "
            f"the workers, by torch.utils.data.get_worker_info()."
        )
    if least == most:
        return OK, f"Every one of the {number} {what} comes {most} times in every epoch."
    extra = int((counts > 1).sum())
    if extra < record.batch_size:
        return WARNING, f"The same {extra} {what} come more than once in every epoch: padding that is always the same."
    return WARNING, f"The same {extra} of {number} {what} come more than once in every epoch: duplicates, or weights?"


def _left_out(
    record: Record, claim: Claim, unseen: Booleans, elsewhere: Int64Array | None, what: str
) -> tuple[str, str]:
    each, never = unseen.sum(axis=1), np.flatnonzero(unseen.all(axis=0))
    number = unseen.shape[1]
    if not len(never):
        return OK, f"{each.mean():.0f} of {number} {what} are left out of an epoch, others each time."
    dropped = len(never) < record.batch_size and not claim.chosen
    if elsewhere is not None and not dropped and np.isin(never, elsewhere).all():
        return OK, f"{len(never)} of {number} {what} are never seen here, since another loader draws them."
    if len(unseen) < 2:
        return _of_one_epoch(len(never), number, what, record.batch_size, claim.chosen)
    if len(never) == each.max() and dropped:
        return FAULT, (
            f"The same {len(never)} of {number} {what} are left out of every epoch, and so never seen: drop_last with "
            f"an order that does not change; shuffle, or keep the last batch."
        )
    if len(never) == each.max():
        first = int(never[0])
        if claim.chosen and first >= 2 and np.array_equal(never, np.arange(first, number)):
            return WARNING, (
                f"The sampler draws only the first {first} of {number} {what}: was it made for a shorter dataset, or "
                f"does a validation have the rest?"
            )
        return WARNING, f"The same {len(never)} of {number} {what} are never seen: is this a subset on purpose?"
    expected = number * float(np.prod(each / number))  # if each epoch left out a random choice
    level = WARNING if len(never) > expected + 6 * np.sqrt(expected) + 6 or len(never) > number / 2 else OK
    return level, (
        f"{each.mean():.0f} of {number} {what} are left out of an epoch, others each time; {len(never)} were never "
        f"seen in {len(unseen)} epochs."
    )


def _of_one_epoch(never: int, number: int, what: str, batch_size: int, chosen: bool) -> tuple[str, str]:
    text = f"{never} of {number} {what} were not seen in the one whole epoch; more epochs would show if they come."
    return OK if never < batch_size and not chosen else WARNING, text


def _replacement(record: Record, claim: Claim, unseen: Booleans, again: Booleans, what: str) -> tuple[str, str]:
    never, number = int(unseen.all(axis=0).sum()), unseen.shape[1]
    seen = (
        f"{unseen.mean():.1%} of the {what} are left out of an epoch, {again.mean():.1%} come more than once, and "
        f"{never} of {number} were never seen in {len(unseen)} {'epoch' if len(unseen) == 1 else 'epochs'}"
    )
    if claim.is_order:
        return OK, f"{seen}: expected of {claim.name}."
    if claim.repeats is False:
        return FAULT, f"{seen}, though {claim.name} should draw each once."
    if record.weights is not None and (zero := int((record.weights == 0).sum())):
        return WARNING, f"{seen}; {zero} have weight 0 and cannot come."
    draws = sum(len(each.samples) for each in record.whole_passes)
    weights = np.ones(number) if record.weights is None or len(record.weights) != number else record.weights
    expected = float(np.exp(draws * np.log1p(-np.minimum(weights / weights.sum(), 1 - 1e-12))).sum())
    rare = never <= expected + 6 * np.sqrt(expected) + 6
    if claim.repeats and rare and never <= number / 2:
        return OK, f"{seen}: expected, since {claim.name} draws samples more than once."
    if claim.repeats:
        return WARNING, f"{seen}, where {expected:.0f} are expected of {claim.name}."
    return WARNING, f"{seen}: draws with replacement? (Independent draws leave 36.8% out.)"
