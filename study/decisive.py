"""Judge the runs of the decisive experiment, stage by stage, by the rule in docs/replication.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replenish.lab.experiments import decisive_configs
from replenish.lab.experiments.costs import known_data
from replenish.lab.experiments.published import STAGES, STOP_ABOVE
from replenish.lab.paper import published_error
from replenish.lab.report.grouping import Group, execution_differences
from replenish.lab.runs import RunRecord
from replenish.lab.statistics import Difference, paired_difference
from replenish.lab.verdict import Rule, decide, signed

PAIRS = STAGES["decisive-five"].seeds
#: The paper's difference in points. Half of it is the threshold between "the published size" and "smaller".
PUBLISHED = (published_error("table3/wrn-srs-b64-120-150-175") or 0.0) - (
    published_error("table3/wrn-b64-120-150-175") or 0.0
)
HALF = PUBLISHED / 2
#: Points below which a difference does not matter; equivalence is two one-sided tests at 5 %.
MARGIN = 0.5
VERDICT = Rule(margin=MARGIN, equivalence_coverage=0.9, unit="points")
RULE = (
    f"Stated before any such run. Stage 1 is one pair, seed 0: if SRS ends above {STOP_ABOVE:g} % test error, the "
    f"published gain is not there, and the experiment stops. Stage 2 is {PAIRS} pairs, seeds 0 to {PAIRS - 1}, test "
    "error after the last epoch, Student's 95 % interval of the paired difference. The published size is there if the "
    f"interval lies below half of the published gain ({signed(HALF)} points). A smaller gain is there if the "
    "interval lies above that and below 0, and the two orders are not equivalent. They are equivalent if the 90 % "
    f"interval lies within ±{MARGIN:g} points. Otherwise nothing is settled. A diverged run counts with the error of "
    "guessing."
)

State = Literal["waiting", "stop", "continue", "published size", "smaller", "equivalent", "worse", "open"]


@dataclass(frozen=True)
class Settled:
    """The outcome: a state, a sentence, and SRS minus reshuffling for each seed."""

    state: State
    sentence: str
    difference: Difference


def settle(srs: Group, reshuffling: Group) -> Settled:
    """Return the outcome of the decisive experiment; only the stated seeds count."""
    errors = _errors(srs)
    difference = paired_difference(errors, _errors(reshuffling))
    if differing := execution_differences(srs, reshuffling):
        found = ", ".join(f"{name} ({one} and {two})" for name, (one, two) in differing.items())
        return Settled("waiting", f"Not settled: the runs of a pair were not executed alike: {found}.", difference)
    if difference.n < PAIRS:
        return _first_stage(errors, difference)
    verdict = decide(difference, VERDICT, ("SRS", "reshuffling"))
    interval = verdict.interval
    if interval is None:
        return Settled("open", "Not settled: all pairs have one difference, which leaves no interval.", difference)
    numbers = (
        f"SRS minus reshuffling is {signed(difference.mean)} points (95 % interval {signed(interval.low)} to "
        f"{signed(interval.high)}, n = {PAIRS} pairs; the paper {signed(PUBLISHED)})."
    )
    if interval.high < HALF:
        return Settled("published size", f"Settled: a gain of the published size is there. {numbers}", difference)
    if verdict.outcome == "equivalent":
        return Settled("equivalent", f"Settled: no difference of {MARGIN:g} points or more. {numbers}", difference)
    if interval.low > HALF and verdict.outcome == "better":
        return Settled("smaller", f"Settled: a gain is there, smaller than the published one. {numbers}", difference)
    if verdict.outcome == "worse":
        return Settled("worse", f"Settled: SRS is worse. {numbers}", difference)
    beyond = " The published size is excluded." if interval.low > HALF else ""
    return Settled("open", f"Not settled: {numbers}{beyond}", difference)


def _first_stage(errors: dict[int, float], difference: Difference) -> Settled:
    if 0 not in difference.seeds:
        return Settled("waiting", "Stage 1 has not ended: seed 0 of both orders is needed.", difference)
    ended = f"Stage 1: SRS ended at {errors[0]:.2f} %, {signed(difference.differences[0])} points from reshuffling"
    if errors[0] > STOP_ABOVE:
        return Settled(
            "stop", f"{ended}. That is above {STOP_ABOVE:g} %, so the published gain is not there: stop.", difference
        )
    more = f"{difference.n} of {PAIRS} pairs of stage 2 have ended"
    return Settled("continue", f"{ended}. Continue with: replenish run decisive-five ({more}).", difference)


def settle_runs(runs: Sequence[RunRecord], scale: str = "full") -> Settled:
    """Return the outcome of these runs at a scale; runs of other configs are ignored."""
    sides = {}
    for order in ("srs", "reshuffling"):
        config = decisive_configs(scale)[f"decisive/{order}"]
        sides[order] = Group(order, config, tuple(run for run in runs if run.config.with_seed(0) == config))
    return settle(sides["srs"], sides["reshuffling"])


def _errors(group: Group) -> dict[int, float]:
    guessing = 100 * (1 - 1 / known_data(group.config).classes)
    diverged = {run.config.seed: guessing for run in group.runs if run.status == "diverged"}
    return {seed: error for seed, error in sorted({**group.errors, **diverged}.items()) if seed < PAIRS}
