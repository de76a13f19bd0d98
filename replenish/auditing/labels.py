"""Whether labels or lengths are well mixed, and whether every class gets its share of the draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.auditing.claims import Claim
from replenish.auditing.record import Record
from replenish.checks import Floats
from replenish.measure.findings import FAULT, OK, WARNING, Finding
from replenish.measure.spectrum import batch_means, random_signs

Labels = ArrayLike | Callable[[Any], Any]

_CONTRASTS = 8  # random contrasts between classes
_MIXED = 0.1  # labels count as mixed below this excess over a good shuffle
_MOST_CLASSES = 2**12
_ENOUGH = 25.0  # expected draws: the probability of none by chance is 1e-11
_STARVED = 0.1  # a class is starved if it gets less than this part of its share


def label_values(record: Record, labels: Labels) -> np.ndarray[Any, Any]:
    """Return the label of each sample; raise if the labels do not fit the record."""
    if callable(labels):
        asked = record.items if record.is_stream else range(record.num_samples)
        labels = [labels(each) for each in asked]
    elif record.is_stream:
        raise TypeError(
            "labels should be a function of an item for a stream, whose items have no number, but got an array"
        )
    values = checks.one_per_sample("labels", labels, record.num_samples)
    if values.dtype.kind not in "iubfUS":
        raise TypeError(f"labels should be numbers or strings, but got an array of dtype {values.dtype}")
    return values


def _contrasts(values: np.ndarray[Any, Any]) -> Floats:
    """Return columns with a number for each sample: random contrasts between classes, or the values themselves."""
    kinds, codes = np.unique(values, return_inverse=True)
    if len(kinds) < 2:
        return np.empty((len(values), 0))
    if values.dtype.kind == "f" or len(kinds) > _MOST_CLASSES:  # such as lengths: their size matters
        numbers = (values if values.dtype.kind in "iuf" else codes).astype(np.float64)[:, None]
    elif len(kinds) == 2:
        numbers = codes.astype(np.float64)[:, None]
    else:
        numbers = random_signs(len(kinds), _CONTRASTS, 0)[codes]
    spread = numbers.std(axis=0)
    return (numbers - numbers.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def label_mixing(record: Record, labels: np.ndarray[Any, Any], copies: int = 1) -> Finding:
    """Check whether a batch is as mixed as a random draw from all samples, with `copies` of each.

    The measure is the mean square of a batch's mean label, relative to a good shuffle: 1 if well mixed, up to the batch
    size if all labels of a batch are equal.
    """
    values = _contrasts(labels)
    if not values.shape[1]:
        return Finding("labels", OK, "All labels are the same.", {})
    draws = record.draws()
    weights = np.bincount(draws.samples, minlength=record.num_samples) / len(draws.samples)
    values = values - weights @ values  # relative to the mean over all draws
    means = batch_means(draws, values)
    spread_drawn = weights @ values**2
    left = (record.num_samples - draws.sizes[:, None]) / max(record.num_samples - 1, 1)
    expected = copies * np.sum(spread_drawn / draws.sizes[:, None] * np.maximum(left, 0))
    excess = float(np.sum(means**2) / expected) - 1 if expected else 0.0
    numbers: dict[str, int | float] = {"spread": 1 + excess}
    chance = 6 * math.sqrt(2 / draws.steps)
    if excess < max(_MIXED, chance):
        return Finding("labels", OK, f"Labels are mixed as by a good shuffle (spread {1 + excess:.2f}).", numbers)
    # The values in the order in which the samples are stored. For a stream, its first epoch is close to that order.
    law = _BufferLaw(values[record.passes[0].samples] if record.is_stream else values, record.batch_size)
    wanted = law.buffer_for(_MIXED)
    now = _displacement(record) if record.is_stream else law.buffer_for(excess)
    numbers["buffer_wanted"] = wanted
    text = f"Labels come in bunches: the mean of a batch varies {1 + excess:.3g} times as much as after a good shuffle"
    if now is not None:
        numbers["buffer_like"] = now
        text += f", as by a shuffle buffer of about {now}" if now > 1 else ", as without any"
    advice = "shuffle all of it" if wanted >= record.num_samples else f"a buffer of {wanted} would do"
    return Finding("labels", FAULT if excess > 1 else WARNING, f"{text}; {advice}.", numbers)


def _displacement(record: Record) -> int | None:
    """Estimate a stream's shuffle buffer from how far neighbours in one epoch are apart in another; None if they stay.

    In a buffer of M an item waits for a time that is exponential with mean M. The distance in one epoch between two
    neighbours of another epoch is the sum of four such waits, two of each sign. The median of its absolute value is
    1.146 M. Whole shards in another order do not change this median.
    """
    if len(record.passes) < 2:
        return None
    first, second = (each.samples for each in record.passes[:2])
    place = np.full(record.num_samples, -1)
    place[second] = np.arange(len(second))
    neighbours = place[first[:-1]], place[first[1:]]
    both = (neighbours[0] >= 0) & (neighbours[1] >= 0)
    if not both.any():
        return None
    apart = float(np.median(np.abs(neighbours[0] - neighbours[1])[both]))
    return None if apart <= 1 else round(apart / 1.146)


class _BufferLaw:
    """How unevenly a shuffle buffer mixes the labels of a stream.

    By the law of the pool, a buffer of M passes 1 / (1 + (w M)^2) of the power at the angle w per sample. The passed
    share of the stored labels' power, times B - 1, is the excess spread of a batch of B.
    """

    def __init__(self, values: Floats, batch_size: int) -> None:
        self._number, self._others = len(values), batch_size - 1
        power = (np.abs(np.fft.rfft(values, axis=0)[1:]) ** 2).sum(axis=1)
        self._angle = 2 * np.pi * np.arange(1, len(power) + 1) / len(values)
        # Subtract the power of shuffled labels, which is the same at all angles. Of the rest, only power that varies
        # slowly within a batch counts.
        half = self._angle * batch_size / 2
        self._share = np.maximum(power / power.sum() - 1 / len(power), 0) * (np.sin(half) / half) ** 2

    def excess(self, buffer: float) -> float:
        """Return the excess of the spread over a good shuffle's."""
        return self._others * float(np.sum(self._share / (1 + (self._angle * buffer) ** 2)))

    def buffer_for(self, target: float) -> int:
        """Return the smallest buffer with at most this excess, or the number of samples if none is large enough."""
        if self.excess(1.0) <= target:
            return 1
        if self.excess(self._number) > target:
            return self._number
        low, high = 0.0, math.log(self._number)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.excess(math.exp(middle)) > target else (low, middle)
        return math.ceil(math.exp(high))


def class_shares(record: Record, labels: np.ndarray[Any, Any], claim: Claim) -> Finding | None:
    """Check whether a class is drawn far less often than its share of the samples, or an equal share if that is less.

    None if labels are not classes, or if every class gets its share.
    """
    kinds, codes = np.unique(labels, return_inverse=True)
    if labels.dtype.kind == "f" or not 1 < len(kinds) <= min(_MOST_CLASSES, record.num_samples // 2):
        return None
    samples = np.concatenate([each.samples for each in record.passes])
    drawn = np.bincount(codes[samples], minlength=len(kinds))
    natural = np.bincount(codes) / len(codes)
    expected = np.minimum(natural, 1 / len(kinds)) * len(samples)
    starved = (expected >= _ENOUGH) & (drawn < _STARVED * expected)
    if not starved.any():
        return None
    worst = int(np.argmax(np.where(starved, expected - drawn, -np.inf)))
    count, many = int(np.bincount(codes)[worst]), int(starved.sum())
    numbers: dict[str, int | float] = {"starved": many, "drawn": int(drawn[worst]), "expected": float(expected[worst])}
    which = f"Class {kinds[worst]} ({count} of the {len(codes)} samples)"
    others = f" So do {many - 1} other classes." if many > 1 else ""
    if drawn[worst]:
        text = f"{which} has {drawn[worst]} of {len(samples)} draws, less than a tenth of its share.{others}"
        return Finding("classes", WARNING, text, numbers)
    text = f"{which} never comes in {len(samples)} draws.{others}"
    if claim.chosen or not any(each.whole for each in record.passes):
        return Finding("classes", WARNING, f"{text} Is it left out on purpose?", numbers)
    reason = " Its weights are 0, or nearly so." if claim.weighted else ""
    return Finding("classes", FAULT, text + reason, numbers)
