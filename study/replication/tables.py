"""The study's tables: our claims, every comparison, its p-values, other measures, and what was run."""

from __future__ import annotations

import statistics
from collections import Counter

from replenish.lab.report.text import duration, p_text, percent
from replenish.lab.show import NOTHING, Cell, Column, Table
from replenish.lab.statistics import Difference
from replenish.lab.verdict import signed
from study.replication.claims import CLAIMS, Claim
from study.replication.evidence import ArmRuns, Evidence
from study.replication.exploratory import log_loss_difference, nats
from study.replication.judgement import Judged, Judgement
from study.replication.text import interval_words


def claims_table(judgement: Judgement) -> Table:
    """Return the claims of this project with their verdicts; those of the paper are in `paper_claims`."""
    columns = (
        Column("claim", lambda claim: claim.title, numeric=False),
        Column("our test", lambda claim: claim.test, numeric=False),
        Column("effect here", lambda claim: _claim_effect(claim, judgement), "points, 95 % interval", numeric=False),
        Column("verdict here", lambda claim: claim.verdict(judgement), numeric=False),
    )
    return Table("claims", "Our claims", columns, [(claim.name, claim) for claim in CLAIMS if claim.ours])


def comparisons_table(judgement: Judgement) -> Table:
    """Return every comparison with its effect and verdict."""
    columns = (
        Column("comparison", lambda judged: judged.comparison.label, numeric=False),
        Column("n", _n),
        Column("effect", lambda judged: _mean(judged.effect)),
        Column("95 % interval", lambda judged: _between(judged.effect)),
        Column("90 % interval", lambda judged: _between(judged.effect, 0.9)),
        Column("by itself", lambda judged: judged.uncorrected, numeric=False),
        Column("verdict", lambda judged: judged.verdict, numeric=False),
    )
    return Table("comparisons", "All", columns, [(judged.comparison.name, judged) for judged in judgement.every])


def p_values_table(judgement: Judgement) -> Table:
    """Return the p-values of every comparison, before and after Holm's correction."""
    columns = (
        Column("comparison", lambda judged: judged.comparison.label, numeric=False),
        Column("sd of pairs", lambda judged: percent(judged.effect.deviation if judged.effect else None)),
        Column("p", lambda judged: _p(judged, judged.effect.p_value if judged.effect else None)),
        Column("p, Holm", lambda judged: _p(judged, judged.adjusted_p)),
        Column("p of equivalence", lambda judged: _p(judged, judged.equivalence_p)),
        Column("p of equivalence, Holm", lambda judged: _p(judged, judged.adjusted_equivalence_p)),
    )
    return Table("p-values", "p-values", columns, [(judged.comparison.name, judged) for judged in judgement.every])


def other_measures_table(evidence: Evidence, second: Judgement) -> Table:
    """Return every comparison on the training images that were not used, and its difference in test log-loss."""
    log_losses = {judged.comparison.name: log_loss_difference(evidence, judged.comparison) for judged in second.every}

    def log_loss(judged: Judged) -> str:
        effect = log_losses[judged.comparison.name]
        return _loss(effect) if effect is not None and judged.complete else NOTHING

    def p_value(judged: Judged) -> str:
        effect = log_losses[judged.comparison.name]
        return p_text(effect.p_value) if effect is not None and judged.complete else NOTHING

    columns = (
        Column("comparison", lambda judged: judged.comparison.label, numeric=False),
        Column("error on images not used", lambda judged: _error(judged.effect), "points, 95 % interval"),
        Column("it would say", lambda judged: judged.verdict, numeric=False),
        Column("test log-loss", log_loss, "nats, 95 % interval"),
        Column("p, uncorrected", p_value),
    )
    return Table("second", "Other measures", columns, [(judged.comparison.name, judged) for judged in second.every])


def arms_table(evidence: Evidence) -> Table:
    """Return the table of each arm's runs."""
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
    remarks = [f"Left out, since its seed was not stated: {path}" for path in evidence.left_out]
    return Table("arms", "What was run", columns, list(evidence.arms.items()), remarks=remarks)


def commands(evidence: Evidence) -> list[str]:
    """Return the commands that made the runs, each with its commit and the number of its runs."""
    ended = [run for arm in evidence.arms.values() for run in arm.runs.values()]
    origins = Counter((str(run.field("command")), str(run.field("commit"))) for run in ended)
    return [f"`{command}` at commit `{commit}`: {count} runs" for (command, commit), count in sorted(origins.items())]


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


def _error(effect: Difference | None) -> str:
    return NOTHING if effect is None else f"{signed(effect.mean)} ({interval_words(effect)})"


def _loss(effect: Difference) -> str:
    return f"{nats(effect.mean)} ({interval_words(effect, show=nats)})"


def _p(judged: Judged, value: float | None) -> str:
    return p_text(value) if judged.judged else NOTHING


def _largest_clean(arm: ArmRuns) -> str:
    values = [run.number("clean_error") for run in arm.runs.values()]
    return percent(max((value for value in values if value is not None), default=None))


def _time(arm: ArmRuns) -> str:
    seconds = [run.number("seconds") or 0.0 for run in arm.runs.values()]
    return duration(statistics.median(seconds)) if seconds else NOTHING
