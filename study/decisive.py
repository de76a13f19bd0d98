"""Whether the runs of the decisive experiment settle the question, by the rule that docs/replication.md states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replenish.lab.experiments import decisive_configs
from replenish.lab.experiments.costs import known_data
from replenish.lab.experiments.published import PAIRS
from replenish.lab.paper import published_error
from replenish.lab.report.grouping import Group, mixed
from replenish.lab.runs import RunRecord
from replenish.lab.statistics import Difference, paired_difference
from replenish.lab.verdict import signed

#: The paper's difference in points, and the half of it that has to be exceeded, or not reached.
PUBLISHED = (published_error("table3/wrn-srs-b64-120-150-175") or 0.0) - (
    published_error("table3/wrn-b64-120-150-175") or 0.0
)
HALF = PUBLISHED / 2
RULE = (
    f"Stated before any such run: {PAIRS} pairs of runs, seeds 0 to {PAIRS - 1}, test error after the last epoch. The "
    f"published gain is there if Student's 95 % interval of the paired difference lies below half of it "
    f"({signed(HALF)} points), and is not there if the interval lies above that; else it is not settled. A diverged "
    "run counts with the error of guessing."
)


@dataclass(frozen=True)
class Settled:
    """Whether the question is settled, and how, with SRS minus reshuffling, seed by seed.

    It is open if all pairs have ended, and the interval holds half of the gain.
    """

    state: Literal["settled", "open", "unknown"]
    sentence: str
    difference: Difference


def settle(srs: Group, reshuffling: Group) -> Settled:
    """Return what the runs of the decisive experiment settle; only the stated seeds count."""
    difference = paired_difference(_errors(srs), _errors(reshuffling))
    if differing := mixed(srs, reshuffling):
        told = ", ".join(f"{name} ({one} and {two})" for name, (one, two) in differing.items())
        return Settled("unknown", f"Not settled: the runs of a pair were not executed alike: {told}.", difference)
    if difference.n < PAIRS:
        missing = f"{difference.n} of {PAIRS} pairs have ended; the same command continues"
        return Settled("unknown", f"Not settled yet: {missing}.", difference)
    interval = difference.interval()
    if interval is None or difference.mean is None:
        return Settled("unknown", "Not settled: all pairs have one difference, which leaves no interval.", difference)
    low, high = interval.low, interval.high
    size = f"SRS minus reshuffling is {signed(difference.mean)} points"
    found = f"{size} (95 % interval {signed(low)} to {signed(high)}, n = {PAIRS} pairs; the paper {signed(PUBLISHED)})"
    if high < HALF:
        return Settled("settled", f"Settled: the published gain is there. {found}.", difference)
    if low > HALF:
        smaller = " A smaller one is: the interval leaves out 0." if high < 0 else ""
        return Settled("settled", f"Settled: the published gain is not there. {found}.{smaller}", difference)
    return Settled("open", f"Not settled: {found}; the interval holds half of the published gain.", difference)


def settle_runs(runs: Sequence[RunRecord], scale: str = "full") -> Settled:
    """Return what these runs settle at a scale; runs of other configs are left out."""
    sides = {}
    for order in ("srs", "reshuffling"):
        config = decisive_configs(scale)[f"decisive/{order}"]
        sides[order] = Group(order, config, tuple(run for run in runs if run.config.with_seed(0) == config))
    return settle(sides["srs"], sides["reshuffling"])


def _errors(group: Group) -> dict[int, float]:
    guessing = 100 * (1 - 1 / known_data(group.config).classes)
    diverged = {run.config.seed: guessing for run in group.runs if run.status == "diverged"}
    return {seed: error for seed, error in sorted({**group.errors, **diverged}.items()) if seed < PAIRS}
