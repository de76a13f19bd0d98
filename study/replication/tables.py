"""The study's tables: the claims, every comparison on either reading, and what was run."""

from __future__ import annotations

import statistics
from collections import Counter

from replenish.lab.report.text import duration, p_words, percent
from replenish.lab.show import NOTHING, Cell, Column, Table
from replenish.lab.statistics import Difference
from replenish.lab.verdict import signed
from study.replication.claims import CLAIMS, Claim
from study.replication.evidence import ArmRuns, Evidence
from study.replication.judgement import Judged, Judgement
from study.replication.text import interval_words


def claims_table(judgement: Judgement) -> Table:
    """Return every claim with its verdict."""
    columns = (
        Column("claim", lambda claim: claim.title, numeric=False),
        Column("whose", lambda claim: "ours" if claim.ours else "paper", numeric=False),
        Column("our test", lambda claim: claim.test, numeric=False),
        Column("effect here", lambda claim: _claim_effect(claim, judgement), "points, 95 % interval", numeric=False),
        Column("verdict here", lambda claim: claim.verdict(judgement), numeric=False),
    )
    return Table("claims", "The claims", columns, [(claim.name, claim) for claim in CLAIMS])


def comparisons_table(judgement: Judgement) -> Table:
    """Return every comparison with its effect, p-values and verdict."""
    columns = (
        Column("comparison", lambda judged: judged.comparison.label, numeric=False),
        Column("n", _n),
        Column("effect", lambda judged: _mean(judged.effect)),
        Column("95 % interval", lambda judged: _between(judged.effect)),
        Column("90 % interval", lambda judged: _between(judged.effect, 0.9)),
        Column("sd of pairs", lambda judged: _deviation(judged.effect)),
        Column("p", lambda judged: _p(judged, judged.effect.p_value if judged.effect else None)),
        Column("p, Holm", lambda judged: _p(judged, judged.adjusted_p)),
        Column("p of equivalence", lambda judged: _p(judged, judged.equivalence_p)),
        Column("p of equivalence, Holm", lambda judged: _p(judged, judged.adjusted_equivalence_p)),
        Column("by itself", lambda judged: judged.uncorrected, numeric=False),
        Column("verdict", lambda judged: judged.verdict, numeric=False),
    )
    return Table("comparisons", "All", columns, [(judged.comparison.name, judged) for judged in judgement.every])


def second_reading_table(first: Judgement, second: Judgement) -> Table:
    """Return every comparison on the second reading, beside the first reading's effect."""
    columns = (
        Column("comparison", lambda judged: judged.comparison.label, numeric=False),
        Column("n", _n),
        Column("test images", lambda judged: _mean(first[judged.comparison.name].effect)),
        Column("images not used", lambda judged: _mean(judged.effect)),
        Column("95 % interval", lambda judged: _between(judged.effect)),
        Column("sd of pairs", lambda judged: _deviation(judged.effect)),
        Column("it would say", lambda judged: judged.verdict, numeric=False),
    )
    return Table("second", "Second reading", columns, [(judged.comparison.name, judged) for judged in second.every])


def arms_table(evidence: Evidence) -> Table:
    """Return what was run of every arm."""
    columns = (
        Column("arm", lambda arm: Cell(arm.arm.name, code=True), numeric=False),
        Column("ended", lambda arm: f"{len(arm.runs)} of {arm.arm.seeds}"),
        Column("diverged", lambda arm: str(len(arm.diverged))),
        Column(
            "test error", lambda arm: percent(statistics.fmean(arm.errors().values()) if arm.runs else None), "mean, %"
        ),
        Column("sd", lambda arm: percent(statistics.stdev(arm.errors().values()) if len(arm.runs) > 1 else None)),
        Column("clean training error", _largest_clean, "largest, %"),
        Column("time", _time, "of a run, median"),
    )
    ended = [run for arm in evidence.arms.values() for run in arm.runs.values()]
    made = Counter((str(run.told("command")), str(run.told("commit"))) for run in ended)
    made_by = "; ".join(f"{command} at commit {commit} ({n} runs)" for (command, commit), n in sorted(made.items()))
    return Table(
        "arms",
        "What was run",
        columns,
        list(evidence.arms.items()),
        remarks=[
            *(f"Left out, since its seed was not stated: {path}" for path in evidence.left_out),
            f"Made by {made_by}.",
        ],
    )


def _claim_effect(claim: Claim, judgement: Judgement) -> str:
    effects = []
    for name in claim.comparisons:
        judged = judgement[name]
        if judged.complete and judged.effect is not None:
            effects.append(f"{signed(judged.effect.mean)} ({interval_words(judged.effect)})")
    return "; ".join(effects) or NOTHING


def _n(judged: Judged) -> str:
    return str(judged.pairs) if judged.complete else f"{judged.pairs} of {judged.comparison.seeds}"


def _mean(effect: Difference | None) -> str:
    return NOTHING if effect is None else signed(effect.mean)


def _between(effect: Difference | None, coverage: float = 0.95) -> str:
    return NOTHING if effect is None else interval_words(effect, coverage)


def _deviation(effect: Difference | None) -> str:
    return percent(None if effect is None else effect.deviation)


def _p(judged: Judged, value: float | None) -> str:
    return p_words(value) if judged.judged else NOTHING


def _largest_clean(arm: ArmRuns) -> str:
    values = [run.number("clean_error") for run in arm.runs.values()]
    return percent(max((value for value in values if value is not None), default=None))


def _time(arm: ArmRuns) -> str:
    seconds = [run.number("seconds") or 0.0 for run in arm.runs.values()]
    return duration(statistics.median(seconds)) if seconds else NOTHING
