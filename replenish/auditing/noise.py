"""Does the noise agree with the law of what the loader claims to be?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.findings import OK, WARNING, Finding
from replenish.auditing.record import Record
from replenish.measure.spectrum import expected_density, spectrum_of

_VALUES = 2**25  # how many values the spectrum may cost
_STANDARD_ERRORS = 8.0  # of one sample of a distribution with long tails, eight times over


def noise(record: Record, claim: Claim) -> Finding | None:
    """Ask whether the noise of the order has the spectrum of what it claims to be; None where no law is known."""
    draws = record.draws()
    whole = all(each.whole for each in record.passes)
    law = claim.law() if whole and draws.steps >= 16 else None
    if law is None:
        return None
    numbers = int(np.clip(_VALUES // len(draws.samples), 8, 128))
    found = spectrum_of(draws, numbers)
    expected = expected_density(law, draws.steps)
    # A pool that has just been filled is not yet in its steady state, which shows below a cycle an epoch.
    first = 0 if law.block is not None else len(record.passes) - 1
    edges = np.unique(np.round(np.geomspace(1, len(expected) + 1, 9)).astype(int)) - 1
    worst, text = 0.0, ""
    for low, high in pairwise(edges):
        band = slice(max(low, first), high)
        if band.start >= high:
            continue
        wanted, mean = expected[band].mean(), found.density[band].mean()
        # Signs are shared by all frequencies and the order is one of many: allow a tenth beside the known error.
        error = np.sqrt(np.sum(found.error[band] ** 2)) / (high - band.start) + 0.02 * (wanted + 0.05)
        if abs(mean - wanted) / error > max(worst, _STANDARD_ERRORS) and abs(mean - wanted) > 0.15:
            worst = float(abs(mean - wanted) / error)
            cycles = found.frequencies[band].mean() * draws.steps_per_epoch
            text = (
                f"The noise is {mean:.2f} of independent draws' at {cycles:.2g} cycles an epoch, where the law of "
                f"{claim.name} has {wanted:.2f}."
            )
    slow = float(found.density[0])
    if worst:
        return Finding("noise", WARNING, text, {"slow_noise": slow, "standard_errors": worst})
    text = (
        f"The noise has the spectrum that the law of {claim.name} says: {slow:.2f} of independent draws' at one cycle "
        f"in {len(record.passes)} epochs."
    )
    return Finding("noise", OK, text, {"slow_noise": slow})
