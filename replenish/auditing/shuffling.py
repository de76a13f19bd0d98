"""Is it shuffled well? The battery of `replenish.diagnostics.shuffle_quality`, as one question."""

from __future__ import annotations

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.findings import OK, Finding
from replenish.auditing.record import Pass, Record
from replenish.draws import Int64Array
from replenish.measure.findings import LEVELS
from replenish.measure.shuffle.epochs import Epoch
from replenish.measure.shuffle.quality import RELATED, REPLACEMENT, WEIGHTED, ShuffleQuality, quality_of_epochs

_FEWEST_DRAWS, _FEWEST_BATCHES = 400, 8
_MOST_DRAWS = 2**20
_NAMED = 3  # effects


def shuffling(record: Record, claim: Claim, epochs_differ: bool) -> Finding | None:
    """Ask whether the order is as random as a uniform shuffle; None where there is none, or too little of it.

    Args:
        record: What was drawn.
        claim: What the loader promises.
        epochs_differ: Whether the epochs were found to differ: otherwise only the first is judged.
    """
    passes = record.passes
    if record.is_stream or any((np.diff(each.samples) > 0).all() for each in passes):
        return None  # items are numbered as they come; what is not shuffled is the epochs' question
    samples, number = _numbered(passes, record.num_samples)
    most = _MOST_DRAWS // len(passes)
    epochs = [_first(drawn, each.sizes, most) for drawn, each in zip(samples, passes, strict=True)]
    draws = sum(len(epoch.indices) for epoch in epochs)
    batches = sum(len(epoch.sizes) for epoch in epochs)
    if number < 2 or draws < _FEWEST_DRAWS or batches < _FEWEST_BATCHES:
        return None
    kind = None
    if claim.weighted:
        kind = WEIGHTED
    elif claim.repeats:
        kind = REPLACEMENT
    elif claim.fixed or claim.is_order or not epochs_differ:
        kind = RELATED  # an order may repeat itself on purpose
    found = quality_of_epochs(epochs, number, kind=kind)
    return _finding(found, claim)


def _numbered(passes: list[Pass], num_samples: int) -> tuple[list[Int64Array], int]:
    """Return the samples, and how many there are; of a fixed part of the dataset, numbered within the part."""
    whole = [np.unique(each.samples) for each in passes if each.whole]
    if len(whole) > 1 and len(whole[0]) < num_samples and all(np.array_equal(whole[0], each) for each in whole[1:]):
        known = np.unique(np.concatenate([each.samples for each in passes]))
        return [np.searchsorted(known, each.samples) for each in passes], len(known)
    return [each.samples for each in passes], num_samples


def _first(samples: Int64Array, sizes: Int64Array, at_most: int) -> Epoch:
    batches = max(1, int(np.searchsorted(np.cumsum(sizes), at_most, side="right")))
    return Epoch(samples[: int(sizes[:batches].sum())], sizes[:batches])


def _finding(found: ShuffleQuality, claim: Claim) -> Finding:
    mean = next((each for each in found.findings if each.name == "batch mean"), None)
    numbers: dict[str, int | float] = {}
    if mean is not None and mean.effect is not None:
        numbers["batch_mean"] = mean.effect
    if found.level == OK:
        shown = f" (the variance of a batch's mean index is {mean.effect:.2f} of its)" if mean is not None else ""
        text = f"In {found.draws} draws nothing differs from a uniform shuffle{shown}."
        return Finding("shuffle", OK, text, numbers)
    worst = sorted((each for each in found.findings if each.level != OK), key=lambda each: -LEVELS.index(each.level))
    numbers |= {each.name: each.effect for each in worst if each.effect is not None}
    text = "The order is not that of a uniform shuffle. " + " ".join(each.sentence for each in worst[:_NAMED])
    if len(worst) > _NAMED:
        text += f" {len(worst) - _NAMED} more: see replenish.diagnostics.shuffle_quality."
    if claim.is_order:
        return Finding("shuffle", OK, f"{text} {claim.name} is meant to do this.", numbers)
    return Finding("shuffle", found.level, text, numbers, effect=worst[0].effect, p=worst[0].p)
