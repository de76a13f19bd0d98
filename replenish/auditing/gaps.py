"""How regular are the visits of a sample? Gaps, beside those that known orders leave when watched for as long."""

from __future__ import annotations

import numpy as np

from replenish.auditing.findings import OK, Finding
from replenish.auditing.record import Record
from replenish.checks import Floats
from replenish.draws import Int64Array
from replenish.measure.gaps import gaps_of

_FEW = 30  # gaps, of which the spread is not yet known
_STANDARD_ERRORS = 2.5  # within which a name could be another


def gaps(record: Record) -> Finding:
    """Ask how long a sample waits for its next visit, and whose regularity that is."""
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
        f"The gap between two visits is {found.mean:.2f} epochs on average, with a variance of {relative:.2f} of its "
        f"square: {like}."
    )
    return Finding("gaps", OK, text, {"mean": found.mean, "variance": found.variance, "relative_variance": relative})


def _likeness(relative: float, error: float, reshuffled: float, independent: float) -> str | None:
    """Say whose gaps have about such a relative variance, or None where its error leaves that open."""
    names = (
        "nearly as regular as one order for ever",
        f"about as regular as with reshuffling ({reshuffled:.2f})",
        f"between reshuffling ({reshuffled:.2f}) and independent draws ({independent:.2f} in as many steps)",
        f"about as irregular as independent draws ({independent:.2f} in as many steps), or more",
    )
    # On the scale from reshuffling to independent draws, sequenced replacement is at 0.33 to 0.57.
    edges = (reshuffled / 2, 0.8 * reshuffled + 0.2 * independent, 0.25 * reshuffled + 0.75 * independent)
    least, most = np.searchsorted(edges, [relative - _STANDARD_ERRORS * error, relative + _STANDARD_ERRORS * error])
    return None if most - least > 1 else ", or ".join(names[least : most + 1])


def _relative_variance(counts: Floats | Int64Array) -> tuple[float, float]:
    """Return the variance of gaps over their squared mean, and its standard error.

    Long gaps do not fit into few epochs, which makes the mean and the variance of irregular ones smaller; their ratio
    suffers less.
    """
    lengths, total = np.arange(len(counts)), counts.sum()
    mean = counts @ lengths / total
    away = lengths / mean - 1
    relative = counts @ away**2 / total
    influence = away**2 - relative - 2 * relative * away  # of one gap on the ratio, by the delta method
    return float(relative), float(np.sqrt(counts @ influence**2) / total)


def _of_independent_draws(chance: float, steps: int) -> float:
    """Return the relative variance of gaps of samples that come in a step by chance, watched for some steps."""
    lengths = np.arange(1, steps)
    weights = (steps - lengths) * (1 - chance) ** (lengths - 1)  # a long gap has fewer steps at which it can begin
    return _relative_variance(np.append(0.0, weights))[0]
