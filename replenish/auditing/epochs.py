"""Whether epochs differ, whether they are well shuffled, and whether all batches have the same size."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.record import Record
from replenish.draws import Int64Array
from replenish.measure.findings import FAULT, LEVELS, OK, WARNING, Finding
from replenish.measure.reading import Epoch
from replenish.measure.shuffle.quality import RELATED, REPLACEMENT, WEIGHTED, ShuffleQuality, quality_of_epochs

_CERTAIN = 23.0  # log(1e10): with that many possible orders, two equal ones are not a coincidence
_MOST_PASSES = 64
_SHORT = 4.0  # a sample of a short batch may count this many times as much as one of a full batch
_FEWEST_DRAWS, _FEWEST_BATCHES = 400, 8
_MOST_DRAWS = 2**20
_NAMED = 3  # how many effects the finding names


def repetition(record: Record, claim: Claim) -> Finding:
    """Check whether every epoch has an order of its own."""
    orders = [each.samples for each in record.passes[:_MOST_PASSES]]
    same = {
        (one, other): _equal_share(orders[one], orders[other])
        for one, other in combinations(range(len(orders)), 2)
        if _possible_orders(min(len(orders[one]), len(orders[other])), record.num_samples) > _CERTAIN
    }
    if not same:
        few = len(orders) if len(orders) < 2 else "short"
        return Finding("epochs", OK, f"Whether epochs differ is not known from {few} pass{'' if few == 1 else 'es'}.")
    most = max(same.values())
    equal = [pair for pair, share in same.items() if share == 1]
    numbers: dict[str, int | float] = {"same_places": most}
    if not equal:
        return _nearly_equal(record, claim, most, numbers)
    if len(equal) < len(same):
        first, second = equal[0]
        numbers["period"] = min(other - one for one, other in equal)
        text = (
            f"Epochs {first} and {second} have the same order: {len(equal)} of {len(same)} pairs of epochs are equal."
        )
        return Finding("epochs", FAULT, text, numbers)
    in_order = bool(np.all(np.diff(orders[0]) > 0)) and not record.is_stream
    if in_order:
        text = "The samples come in the dataset's own order in every epoch: they are not shuffled."
        return Finding("epochs", WARNING, text, numbers)
    if claim.fixed:
        return Finding("epochs", OK, f"Every epoch comes in the same order, as {claim.name} should.", numbers)
    text = f"Every one of the {len(orders)} epochs comes in the same order"
    if claim.set_epoch is not None:
        return Finding("epochs", FAULT, f"{text}: {_set_epoch(record, claim)}", numbers)
    return Finding("epochs", WARNING, f"{text}: shuffled once, or not at all?", numbers)


def _set_epoch(record: Record, claim: Claim) -> str:
    numbers = {each.number for each in record.passes}
    if len(numbers) > 1:
        return f"{claim.set_epoch}.set_epoch was called without effect."
    advice = f"call {claim.set_epoch}.set_epoch(epoch) before every epoch, with its number."
    epoch = numbers.pop()
    return advice if epoch is None else f"its {claim.set_epoch} was at epoch {epoch} in all of them; {advice}"


def _possible_orders(length: int, number: int) -> float:
    """Return the log of the number of orders in which `length` of `number` samples can come."""
    places = np.arange(min(length, number, 64))
    return float(np.log(np.maximum(number - places, 1)).sum())


def _equal_share(one: Int64Array, other: Int64Array) -> float:
    length = min(len(one), len(other))
    return float(np.mean(one[:length] == other[:length]))


def _nearly_equal(record: Record, claim: Claim, most: float, numbers: dict[str, int | float]) -> Finding:
    if most > 0.5 and len(record.passes[0].samples) > 20 and not claim.is_order:
        text = f"{most:.0%} of the places of an epoch hold what they held in another epoch."
        return Finding("epochs", WARNING, text, numbers)
    shared = _shared_batches(record)
    if shared > 0.5 and record.batch_size > 1 and len(record.passes[0].sizes) > 4 and not claim.is_order:
        text = f"{shared:.0%} of the batches come again, sample for sample, elsewhere: only batches are shuffled."
        return Finding("epochs", WARNING, text, {"same_batches": shared})
    return Finding("epochs", OK, f"Each of the {len(record.passes)} epochs comes in another order.", numbers)


def _shared_batches(record: Record) -> float:
    one, other = ({tuple(np.sort(batch).tolist()) for batch in each.batches()} for each in record.passes[:2])
    return len(one & other) / len(one)


def batch_sizes(record: Record) -> Finding:
    """Check whether all batches have the same size."""
    usual = record.batch_size
    sizes = [each.sizes for each in record.passes]
    numbers: dict[str, int | float] = {
        "batch_size": usual,
        "smallest": int(min(each.min() for each in sizes)),
        "largest": int(max(each.max() for each in sizes)),
    }
    if all((each == usual).all() for each in sizes):
        return Finding("batches", OK, f"All batches have {usual} samples.", numbers)
    if not all((each[:-1] == usual).all() for each in sizes):
        text = f"Batches have from {numbers['smallest']} to {numbers['largest']} samples: is that on purpose?"
        return Finding("batches", WARNING, text, numbers)
    short = next(int(each[-1]) for each in sizes if each[-1] != usual)
    text = (
        f"The last batch of an epoch has {short} of {usual} samples: each counts {usual / short:.3g} times as much in "
        f"a mean over the batch."
    )
    if short == 1:
        return Finding("batches", WARNING, f"{text} A single sample breaks batch norm.", numbers)
    return Finding("batches", WARNING if usual / short > _SHORT else OK, text, numbers)


def shuffling(record: Record, claim: Claim, epochs_differ: bool) -> Finding | None:
    """Check whether the order is as random as a uniform shuffle; None if it is not shuffled or too short to tell.

    Unless the epochs differ, only the first is judged.
    """
    passes = record.passes
    if record.is_stream or any((np.diff(each.samples) > 0).all() for each in passes):
        return None  # the items of a stream are numbered as they come; `repetition` reports what is not shuffled
    samples, number = _numbered(passes, record.num_samples)
    most = _MOST_DRAWS // len(passes)
    epochs = [_first(drawn, each.sizes, most) for drawn, each in zip(samples, passes, strict=True)]
    draws = sum(len(epoch.samples) for epoch in epochs)
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


def _numbered(passes: list[Epoch], num_samples: int) -> tuple[list[Int64Array], int]:
    """Return the samples of each pass and their number, renumbered if every pass draws the same part of the dataset."""
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
        shown = f" (variance of a batch's mean index: {mean.effect:.2f} times as large)" if mean is not None else ""
        text = f"Nothing differs from a uniform shuffle in {found.draws} draws{shown}."
        return Finding("shuffle", OK, text, numbers)
    worst = sorted((each for each in found.findings if each.level != OK), key=lambda each: -LEVELS.index(each.level))
    numbers |= {each.name: each.effect for each in worst if each.effect is not None}
    text = "The order is not that of a uniform shuffle. " + " ".join(each.sentence for each in worst[:_NAMED])
    if len(worst) > _NAMED:
        text += f" {len(worst) - _NAMED} more: see replenish.diagnostics.shuffle_quality."
    if claim.is_order:
        return Finding("shuffle", OK, f"{text} {claim.name} is meant to do this.", numbers)
    return Finding("shuffle", found.level, text, numbers, effect=worst[0].effect, p=worst[0].p)
