"""The decisive experiment in a report: settled or not, by the rule that docs/replication.md states."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replenish.lab.comparing.statistics import PairedDifference, paired_difference, signed
from replenish.lab.config import RunConfig
from replenish.lab.experiments import SCALES, decisive_configs
from replenish.lab.experiments.costs import known_data
from replenish.lab.experiments.decisive import PAIRS
from replenish.lab.paper import published_error
from replenish.lab.report.figures import curves, seeds_figure
from replenish.lab.report.grouping import Group, mixed
from replenish.lab.report.tables import FULL_SCALE, experiments_table
from replenish.lab.report.words import recipe_words
from replenish.lab.runs import RunRecord
from replenish.lab.show import Finding, Section

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
    difference: PairedDifference


def settle(srs: Group, reshuffling: Group) -> Settled:
    """Return what the runs of the decisive experiment settle; only the stated seeds count."""
    difference = paired_difference(_errors(srs), _errors(reshuffling))
    if differing := mixed(srs, reshuffling):
        told = ", ".join(f"{name} ({one} and {two})" for name, (one, two) in differing.items())
        return Settled("unknown", f"Not settled: the runs of a pair were not executed alike: {told}.", difference)
    if difference.n < PAIRS:
        missing = f"{difference.n} of {PAIRS} pairs have ended; the same command goes on"
        return Settled("unknown", f"Not settled yet: {missing}.", difference)
    if difference.interval is None or difference.mean is None:
        return Settled("unknown", "Not settled: all pairs have one difference, which leaves no interval.", difference)
    low, high = difference.interval.low, difference.interval.high
    size = f"SRS minus reshuffling is {signed(difference.mean)} points"
    found = f"{size} (95 % interval {signed(low)} to {signed(high)}, n = {PAIRS} pairs; the paper {signed(PUBLISHED)})"
    if high < HALF:
        return Settled("settled", f"Settled: the published gain is there. {found}.", difference)
    if low > HALF:
        smaller = " A smaller one is: the interval leaves out 0." if high < 0 else ""
        return Settled("settled", f"Settled: the published gain is not there. {found}.{smaller}", difference)
    return Settled("open", f"Not settled: {found}; the interval holds half of the published gain.", difference)


def decisive_sections(runs: Sequence[RunRecord]) -> tuple[list[Section], set[RunConfig]]:
    """Return a section for every scale, length and precision at which the experiment has runs, and their configs."""
    sides: dict[tuple[str, int, str], dict[str, list[RunRecord]]] = {}
    for scale in SCALES:
        for config in decisive_configs(scale).values():
            for run in runs:
                epochs, precision, seed = run.config.epochs, run.config.precision, run.config.seed
                if dataclasses.replace(config.for_epochs(epochs), precision=precision, seed=seed) == run.config:
                    sides.setdefault((scale, epochs, precision), {}).setdefault(config.order, []).append(run)
    sections = [_section(*key, found) for key, found in sides.items()]
    told = {run.config.with_seed(0) for found in sides.values() for runs in found.values() for run in runs}
    return sections, told


def _section(scale: str, epochs: int, precision: str, runs: dict[str, list[RunRecord]]) -> Section:
    groups = {order: Group(order, found[0].config.with_seed(0), tuple(found)) for order, found in runs.items()}
    config = next(iter(groups.values())).config
    empty = {order: Group(order, dataclasses.replace(config, order=order), ()) for order in ("srs", "reshuffling")}
    settled = settle(*(groups.get(order, empty[order]) for order in ("srs", "reshuffling")))
    name = f"decisive-{scale}-{epochs}-{precision}"
    whole = scale == FULL_SCALE and epochs == decisive_configs()["decisive/srs"].epochs
    trial = (
        f"This is a trial at the scale {scale} with {epochs} effective epochs: it shows the machinery at work and "
        "settles nothing about the paper."
    )
    finding = Finding(
        f"{name}-finding",
        "SRS",
        "reshuffling",
        settled.sentence if whole else f"In this trial: {settled.sentence[0].lower()}{settled.sentence[1:]}",
        settled.state if whole else "trial",
        settled.difference,
        paper=PUBLISHED,
    )
    blocks = [
        experiments_table(groups, f"{name}-orders"),
        curves(groups, name=f"{name}-curves"),
        seeds_figure(groups, f"{name}-seeds"),
    ]
    return Section(
        name,
        "Are the 7 points there? The decisive experiment",
        paragraphs=(RULE, recipe_words(config), *(() if whole else (trial,))),
        findings=(finding,),
        blocks=tuple(block for block in blocks if block is not None),
    )


def _errors(group: Group) -> dict[int, float]:
    guessing = 100 * (1 - 1 / known_data(group.config).classes)
    diverged = {run.config.seed: guessing for run in group.runs if run.status == "diverged"}
    return {seed: error for seed, error in sorted({**group.errors, **diverged}.items()) if seed < PAIRS}
