"""Does every class get its share of the draws?"""

from __future__ import annotations

from typing import Any

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.findings import FAULT, WARNING, Finding
from replenish.auditing.record import Record

_MOST_CLASSES = 2**12
_ENOUGH = 25.0  # expected draws: to get none of them by chance has a probability of 1e-11
_STARVED = 0.1  # of its share


def class_shares(record: Record, labels: np.ndarray[Any, Any], claim: Claim) -> Finding | None:
    """Ask whether a class comes much more rarely than both its share of the samples and an equal share.

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
