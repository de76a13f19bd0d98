"""Questions about what comes: are all samples seen, is every epoch another, are ranks apart, are batches alike?"""

from __future__ import annotations

from itertools import pairwise, zip_longest

import numpy as np
from numpy.typing import NDArray

from replenish.auditing.claims import Claim
from replenish.auditing.findings import FINE, LOOK, WRONG, Finding
from replenish.auditing.record import Record
from replenish.draws import Int64Array

Booleans = NDArray[np.bool_]


def coverage(record: Record, claim: Claim) -> Finding:
    """Ask which samples are never seen, or more than once, in an epoch, and whether always the same."""
    counts = record.counts()
    if claim.chosen:  # the sampler was told which samples to draw: the others are none of its business
        counts = counts[:, counts.any(axis=0)]
    number, what = counts.shape[1], "items" if record.is_stream else "samples"
    unseen, again = counts == 0, counts > 1
    numbers: dict[str, int | float] = {
        what: number,
        "unseen_in_an_epoch": float(unseen.sum(axis=1).mean()),
        "more_than_once_in_an_epoch": float(again.sum(axis=1).mean()),
        "never_seen": int(unseen.all(axis=0).sum()),
    }

    def found(verdict: str, sentence: str) -> Finding:
        return Finding("coverage", verdict, sentence, numbers)

    if record.cut:
        read = len(record.samples(0))
        return found(LOOK, f"An epoch is longer than the {read} draws read, so coverage is not known.")
    if record.is_stream and len(counts) > 1 and not (counts > 0).all(axis=0).any():
        return found(
            LOOK,
            "No item came in every epoch: items that are changed at random look new each time; pass key=... to say "
            "what names an item.",
        )
    if claim.replicas > 1:
        share = float((~unseen).sum(axis=1).mean())
        return found(
            FINE,
            f"One rank of {claim.replicas} sees {share:.0f} of the {number} samples in an epoch; audit all ranks "
            f"together, as audit([loader_0, loader_1]), to know the rest.",
        )
    if not unseen.any() and (counts == counts[:1]).all():
        if not again.any():
            return found(FINE, f"Every one of the {number} {what} comes once in every epoch.")
        if record.is_stream and (counts == claim.workers).all():
            return found(
                WRONG,
                f"Every item comes {claim.workers} times in every epoch, once from each worker: divide the stream "
                f"among the workers, by torch.utils.data.get_worker_info().",
            )
        return found(*_same_repeats(counts[0], what, record.batch_size))
    if unseen.any() and again.any():
        return found(*_replacement(unseen, again, what, claim))
    if again.any():
        return found(
            FINE,
            f"{numbers['more_than_once_in_an_epoch']:.0f} {what} come twice in an epoch, others each time: padding.",
        )
    return found(*_left_out(unseen, what, record.batch_size))


def _same_repeats(counts: Int64Array, what: str, batch_size: int) -> tuple[str, str]:
    extra = int((counts > 1).sum())
    if counts.min() == counts.max():
        return FINE, f"Every one of the {len(counts)} {what} comes {counts[0]} times in every epoch."
    if extra < batch_size:
        return LOOK, f"The same {extra} {what} come more than once in every epoch: padding that is always the same."
    return LOOK, f"The same {extra} of {len(counts)} {what} come more than once in every epoch: duplicates, or weights?"


def _left_out(unseen: Booleans, what: str, batch_size: int) -> tuple[str, str]:
    never, each = int(unseen.all(axis=0).sum()), unseen.sum(axis=1)
    if len(unseen) < 2:
        return LOOK, f"{each[0]} of {unseen.shape[1]} {what} are left out; more epochs would tell if always the same."
    if never == each.max():
        if never < batch_size:
            return WRONG, (
                f"The same {never} of {unseen.shape[1]} {what} are left out of every epoch, and so never seen: "
                f"drop_last with an order that does not change; shuffle, or keep the last batch."
            )
        return LOOK, f"The same {never} of {unseen.shape[1]} {what} are never seen: is this a subset on purpose?"
    return FINE, (
        f"{each.mean():.0f} of {unseen.shape[1]} {what} are left out of an epoch, others each time"
        + (f"; {never} were never seen so far." if never else ".")
    )


def _replacement(unseen: Booleans, again: Booleans, what: str, claim: Claim) -> tuple[str, str]:
    seen = (
        f"{unseen.mean():.1%} of the {what} are left out of an epoch, {again.mean():.1%} come more than once, and "
        f"{unseen.all(axis=0).mean():.1%} were never seen in {len(unseen)} epochs"
    )
    if claim.repeats:
        return FINE, f"{seen}: expected, for {claim.name} draws samples more than once."
    if claim.repeats is False:
        return WRONG, f"{seen}, though {claim.name} should draw each once."
    return LOOK, f"{seen}: draws with replacement? (Independent draws leave 36.8% out.)"


def repetition(record: Record, claim: Claim, epochs_told: bool) -> Finding:
    """Ask whether the epochs differ."""
    orders = [record.samples(epoch) for epoch in range(len(record.epochs))]
    same = [float(np.mean(one == other)) if len(one) == len(other) else 0.0 for one, other in pairwise(orders)]
    numbers: dict[str, int | float] = {"same_places": max(same)}
    if max(same) < 1 or record.num_samples == 1:
        # n of N places agree by chance about once an epoch, so a hundredth of many is no chance.
        if max(same) > 0.5 and len(orders[0]) > 20:
            text = f"{max(same):.0%} of the places of an epoch hold what they held in the epoch before."
            return Finding("epochs", LOOK, text, numbers)
        shared = _shared_batches(record)
        if shared > 0.5 and record.batch_size > 1 and len(record.epochs[0]) > 4 and not claim.is_order:
            text = f"{shared:.0%} of the batches come again, sample for sample, elsewhere: only batches are shuffled."
            return Finding("epochs", LOOK, text, {"same_batches": shared})
        return Finding("epochs", FINE, "Every epoch comes in another order.", numbers)
    in_order = bool(np.all(np.diff(orders[0]) > 0)) and not record.is_stream
    if claim.set_epoch is not None and not in_order:
        told = (
            "although before_epoch was called"
            if epochs_told
            else "call it before every epoch (if your loop does, pass it here as before_epoch)"
        )
        text = f"Every epoch comes in the same order: {claim.set_epoch}.set_epoch was not called; {told}."
        return Finding("epochs", WRONG, text, numbers)
    if claim.fixed and not in_order:
        return Finding("epochs", FINE, f"Every epoch comes in the same order, as {claim.name} should.", numbers)
    text = "Every epoch comes in the same order: shuffled once, or not at all?"
    if in_order:
        text = "The data come in their own order in every epoch: they are not shuffled."
    return Finding("epochs", LOOK, text, numbers)


def _shared_batches(record: Record) -> float:
    one, other = ({tuple(sorted(batch.tolist())) for batch in epoch} for epoch in record.epochs[:2])
    return len(one & other) / len(one)


def batch_sizes(record: Record) -> Finding:
    """Ask whether batches are of one size."""
    sizes = [np.array([len(batch) for batch in epoch]) for epoch in record.epochs]
    usual = record.batch_size
    numbers: dict[str, int | float] = {
        "batch_size": usual,
        "smallest": int(min(each.min() for each in sizes)),
        "largest": int(max(each.max() for each in sizes)),
    }
    if all((each == usual).all() for each in sizes):
        return Finding("batches", FINE, f"All batches have {usual} samples.", numbers)
    if all((each[:-1] == usual).all() for each in sizes):
        short = int(sizes[0][-1])
        text = (
            f"The last batch of an epoch has {short} of {usual} samples: each counts {usual / short:.3g} times as much "
            f"in a mean over the batch."
        )
        if short == 1:
            return Finding("batches", LOOK, f"{text} A single sample breaks batch norm.", numbers)
        return Finding("batches", FINE, text, numbers)
    text = f"Batches have from {numbers['smallest']} to {numbers['largest']} samples: is that on purpose?"
    return Finding("batches", LOOK, text, numbers)


def ranks(records: list[Record], claim: Claim) -> Finding:
    """Ask whether the samples of an epoch are divided among the ranks, or drawn by several of them."""
    shared, drawn, number = 0, 0, max(each.num_samples for each in records)
    for epoch in range(len(records[0].epochs)):
        seen = np.stack([np.bincount(each.samples(epoch), minlength=number) > 0 for each in records]).sum(axis=0)
        shared += int((seen > 1).sum())
        drawn += int((seen > 0).sum())
    share = shared / drawn
    numbers: dict[str, int | float] = {"ranks": len(records), "shared": share}
    if all(np.array_equal(records[0].samples(0), each.samples(0)) for each in records[1:]):
        text = f"All {len(records)} ranks draw the same samples: were they made with the same rank? Give each its own."
        return Finding("ranks", WRONG, text, numbers)
    if shared == 0:
        return Finding("ranks", FINE, f"No sample is drawn by two of the {len(records)} ranks in an epoch.", numbers)
    padded = shared <= len(records) * len(records[0].epochs)
    text = f"{share:.2%} of the samples of an epoch are drawn by more than one of the {len(records)} ranks"
    if padded:
        return Finding("ranks", FINE, f"{text}: padding, so that all have as many.", numbers)
    if claim.repeats:
        return Finding("ranks", FINE, f"{text}: expected, for {claim.name} draws samples more than once.", numbers)
    return Finding("ranks", WRONG if share > 0.05 else LOOK, f"{text}: do they shuffle with different seeds?", numbers)


def joined(records: list[Record]) -> Record:
    """Return the ranks as one: step by step, the batches of all."""
    none = np.empty(0, dtype=np.int64)  # ranks may have different numbers of steps
    epochs = [
        [np.concatenate(batches) for batches in zip_longest(*(each.epochs[epoch] for each in records), fillvalue=none)]
        for epoch in range(len(records[0].epochs))
    ]
    last = max(records, key=lambda each: each.num_samples)
    return Record(epochs, last.num_samples, last.is_stream, last.items, any(each.cut for each in records))
