"""The gaps between visits of a sample, and the noise that they cause, compared with known orders."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.record import Record
from replenish.checks import Floats
from replenish.draws import Int64Array
from replenish.measure.findings import OK, WARNING, Finding
from replenish.measure.gaps import gaps_of
from replenish.measure.spectrum import expected_density, spectrum_of

_FEW = 30  # with fewer gaps, their spread is not known
_UNSURE = 2.5  # standard errors within which another description could hold
_VALUES = 2**25  # how many values the spectrum may take
_CERTAIN = 8.0  # standard errors: eight bands are tested, and the tails are long


def gaps(record: Record) -> Finding:
    """Report how long a sample waits for its next visit, and which known order has gaps about as regular."""
    draws = record.draws()
    found = gaps_of(draws)
    number = int(found.counts.sum())
    if not number:
        return Finding("gaps", OK, "No sample came twice, so there are no gaps.", {})
    visited = len(np.unique(draws.samples))
    steps_per_pass = visited * draws.steps / len(draws.samples)
    reshuffled = max(0.0, 1 - steps_per_pass**-2) / 6
    independent = _of_independent_draws((number + visited) / (visited * draws.steps), draws.steps)
    relative, error = _relative_variance(found.counts)
    like = _likeness(relative, error, reshuffled, independent)
    if like is None or number < _FEW or draws.steps < 3:
        like = f"{number} gaps in {draws.steps} steps are too few to say how regular that is"
    text = (
        f"The gap between two visits is {found.mean:.2f} epochs on average, with a relative variance of "
        f"{relative:.2f}: {like}."
    )
    return Finding("gaps", OK, text, {"mean": found.mean, "variance": found.variance, "relative_variance": relative})


def _likeness(relative: float, error: float, reshuffled: float, independent: float) -> str | None:
    """Describe which orders have gaps of about this relative variance; None if its error is too large to tell."""
    names = (
        "nearly as regular as a fixed order",
        f"about as regular as reshuffling ({reshuffled:.2f})",
        f"between reshuffling ({reshuffled:.2f}) and independent draws ({independent:.2f} in as many steps)",
        f"about as irregular as independent draws ({independent:.2f} in as many steps), or more",
    )
    # On the scale from reshuffling to independent draws, sequenced replacement is at 0.33 to 0.57.
    edges = (reshuffled / 2, 0.8 * reshuffled + 0.2 * independent, 0.25 * reshuffled + 0.75 * independent)
    least, most = np.searchsorted(edges, [relative - _UNSURE * error, relative + _UNSURE * error])
    return None if most - least > 1 else ", or ".join(names[least : most + 1])


def _relative_variance(counts: Floats | Int64Array) -> tuple[float, float]:
    """Return the variance of gaps over their squared mean, and its standard error.

    Few epochs miss long gaps, which lowers both the mean and the variance of irregular gaps. Their ratio suffers less.
    """
    lengths, total = np.arange(len(counts)), counts.sum()
    mean = counts @ lengths / total
    away = lengths / mean - 1
    relative = counts @ away**2 / total
    influence = away**2 - relative - 2 * relative * away  # of one gap on the ratio, by the delta method
    return float(relative), float(np.sqrt(counts @ influence**2) / total)


def _of_independent_draws(probability: float, steps: int) -> float:
    """Return the relative variance of the gaps in some steps, each of which draws a sample with this probability."""
    lengths = np.arange(1, steps)
    weights = (steps - lengths) * (1 - probability) ** (lengths - 1)  # a long gap can begin at fewer steps
    return _relative_variance(np.append(0.0, weights))[0]


def noise(record: Record, claim: Claim) -> Finding | None:
    """Check whether the noise of the order has the spectrum of the claimed order; None if its law is not known."""
    draws = record.draws()
    whole = all(each.whole for each in record.passes)
    law = claim.law() if whole and draws.steps >= 16 else None
    if law is None:
        return None
    numbers = int(np.clip(_VALUES // len(draws.samples), 8, 128))
    found = spectrum_of(draws, numbers)
    expected = expected_density(law, draws.steps)
    # A pool that was just filled is not yet in its steady state, which changes the noise below one cycle per epoch.
    first = 0 if law.block is not None else len(record.passes) - 1
    edges = np.unique(np.round(np.geomspace(1, len(expected) + 1, 9)).astype(int)) - 1
    worst, text = 0.0, ""
    for low, high in pairwise(edges):
        band = slice(max(low, first), high)
        if band.start >= high:
            continue
        wanted, mean = expected[band].mean(), found.density[band].mean()
        # All frequencies share the random signs, and the order is one of many: add 2 % to the known error.
        error = np.sqrt(np.sum(found.error[band] ** 2)) / (high - band.start) + 0.02 * (wanted + 0.05)
        if abs(mean - wanted) / error > max(worst, _CERTAIN) and abs(mean - wanted) > 0.15:
            worst = float(abs(mean - wanted) / error)
            cycles = found.frequencies[band].mean() * draws.steps_per_epoch
            text = (
                f"The noise is {mean:.2f} times that of independent draws at {cycles:.2g} cycles per epoch, where the "
                f"law of {claim.name} has {wanted:.2f}."
            )
    slow = float(found.density[0])
    if worst:
        return Finding("noise", WARNING, text, {"slow_noise": slow, "standard_errors": worst})
    text = (
        f"The noise follows the law of {claim.name}: at one cycle per {len(record.passes)} epochs it is {slow:.2f} "
        f"times that of independent draws."
    )
    return Finding("noise", OK, text, {"slow_noise": slow})
