"""Does a loader draw samples that another of the run draws too: a validation that is trained on?"""

from __future__ import annotations

import numpy as np

from replenish.auditing.findings import OK, Finding
from replenish.auditing.record import Record
from replenish.draws import Int64Array


def drawn_samples(record: Record) -> Int64Array:
    """Return the samples that a loader drew, as numbers of the dataset at the bottom."""
    positions = np.unique(np.concatenate([each.samples for each in record.passes]))
    return positions if record.identity is None else np.unique(record.identity.samples_of(positions))


def leak(trained: Record, other: Record, name: str, level: str) -> Finding | None:
    """Ask whether two loaders draw the same samples; None where that cannot be known.

    Samples are compared, not positions: through `Subset.indices` to the dataset below. `level` is that of a leak.
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
    text = (
        f"{len(both)} of the {len(two)} samples of {name} are trained with too, such as sample {both[0]}: its results "
        f"say nothing about new data."
    )
    return Finding("leak", level, text, numbers)


def elsewhere(record: Record, others: list[Record]) -> Int64Array | None:
    """Return the positions of a record's dataset that other loaders draw, or None."""
    identity = record.identity
    if identity is None:
        return None
    drawn = [drawn_samples(each) for each in others if each.identity and each.identity.root == identity.root]
    if not drawn:
        return None
    samples = np.unique(np.concatenate(drawn))
    return samples if identity.samples is None else np.flatnonzero(np.isin(identity.samples, samples))
