"""What the records of the second study put into docs/second_study.md: its generated parts, and its picture.

Nothing of a part is judged, or shown, before its last run has ended.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from replenish.lab.config import RunConfig
from replenish.lab.runs import RunRecord, read_runs
from replenish.lab.show import Cell, Column, Table
from replenish.lab.show.markdown import table_lines
from replenish.lab.statistics import mean_with_interval, paired_difference
from study.pictures import ForestRow, forest_picture
from study.rules import K1_EPOCH, LEVEL, LOG_LOSS_MARGIN, PREDICTED_ORDER, Judgement, holm, k1, k2, k3, k4
from study.second import PARTS

PICTURE = "second_study_dose.svg"
#: What a run that diverged keeps: the error and the log-loss of guessing among 100 classes.
GUESSING = {"test_error": 99.0, "test_loss": math.log(100), "clean_loss": math.log(100)}
#: The arms of part K in the predicted order, and last the one at another learning rate.
ARMS = {
    "shuffle-once": "shuffle once",
    "srs-quarter": "SRS, k = 1/4",
    "reshuffling": "reshuffling",
    "srs": "SRS, k = 1",
    "srs-four": "SRS, k = 4",
    "replacement": "batched replacement",
    "reshuffling-equal-variance": "reshuffling, rate 0.203",
}

#: The ended runs of every arm, and a quantity of every arm, in the order of the seeds.
Runs = Mapping[str, list[RunRecord]]
Values = Mapping[str, Sequence[float]]


def doses(records: Path) -> dict[str, list[RunRecord]]:
    """Return the ended runs of every arm of part K."""
    return by_arm(read_runs(records / "K"))


def by_arm(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return those of the runs that have ended, by their arm of part K, in the order of their seeds."""
    found: dict[RunConfig, list[RunRecord]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.config.seed):
        if run.result is not None:
            found[run.config.with_seed(0)].append(run)
    return {name: found[config.with_seed(0)] for name, config in PARTS["K"].arms.items()}


def all_ended(runs: Runs) -> bool:
    """Return whether the last run has ended, before which nothing is judged."""
    return all(len(ended) == PARTS["K"].seeds for ended in runs.values())


def final(runs: Runs, name: str) -> Values:
    """Return a number of the last epoch."""
    return {arm: [_kept(run, name, run.number(name)) for run in ended] for arm, ended in runs.items()}


def clean_loss(runs: Runs) -> Values:
    """Return the clean training loss before the first decay of the learning rate."""
    return {
        arm: [_kept(run, "clean_loss", run.metrics[K1_EPOCH - 1]["clean_loss"]) for run in ended]
        for arm, ended in runs.items()
    }


def parts(runs: Runs) -> dict[str, str]:
    """Return the page's generated parts as Markdown, by their names."""
    if not all_ended(runs):
        stated, ended = len(runs) * PARTS["K"].seeds, sum(map(len, runs.values()))
        waiting = f"{ended} of the {stated} runs of part K have ended. Nothing is judged before the last one."
        return {"dose-headline": waiting, "dose-verdicts": "", "dose-arms": "", "dose-runs": ""}
    return {
        "dose-headline": _headline(runs),
        "dose-verdicts": _verdicts(runs),
        "dose-arms": "\n".join(table_lines(_arms(runs))),
        "dose-runs": _origin(runs),
    }


def picture(runs: Runs) -> str | None:
    """Return what every arm does to three quantities, beside reshuffling; None before the last run."""
    if not all_ended(runs):
        return None
    rows = []
    for title, values in (
        (f"Clean training loss after epoch {K1_EPOCH}, nats", clean_loss(runs)),
        ("Final test log-loss, nats", final(runs, "test_loss")),
        ("Final test error, share of the images (0.01 is a point)", _hundredths(final(runs, "test_error"))),
    ):
        rows.append(ForestRow(title, heading=True))
        rows += [_row(arm, values) for arm in ARMS if arm != "reshuffling"]
    return forest_picture(
        "Every arm of part K minus reshuffling, with 95 % intervals",
        rows,
        LOG_LOSS_MARGIN,
        "← lower than reshuffling · higher →",
        f"band: the margin of {LOG_LOSS_MARGIN} nats",
    )


def _headline(runs: Runs) -> str:
    loss = final(runs, "test_loss")
    p, second, fourth = k1(clean_loss(runs)), k2(loss), k4(loss)
    held = "held" if p < LEVEL else "did not hold"
    rank = "as predicted" if _rises(clean_loss(runs)) else "not exactly as predicted"
    return "\n".join(
        [
            f"- **K1, our law (primary): {held}.** Page's trend test over the six arms gives p = {_p(p)}; the arms' "
            f"means are ordered {rank}.",
            f"- **K2, test log-loss (co-primary): {second.verdict}.** SRS minus reshuffling: {_told(second)} nats, "
            f"margin {LOG_LOSS_MARGIN}.",
            f"- **K3, an optimum in between: {_K3[_after_holm(runs)['K3']]}.** SRS minus the mean of reshuffling and "
            f"replacement: {_told(k3(final(runs, 'test_error')), 2)} points of test error.",
            f"- **K4, a larger learning rate does the same to log-loss: {_after_holm(runs)['K4']}.** SRS minus "
            f"reshuffling at the rate of equal variance: {_told(fourth)} nats, margin {LOG_LOSS_MARGIN}.",
        ]
    )


#: K3 has no margin, so that it can be better, worse or undecided.
_K3 = {"better": "seen here", "worse": "the opposite was seen", "undecided": "undecided"}


def _rises(values: Values) -> bool:
    means = [fmean(values[arm]) for arm in PREDICTED_ORDER]
    return means == sorted(means)


def _secondary(runs: Runs) -> tuple[dict[str, Judgement], dict[str, float]]:
    judged = {"K3": k3(final(runs, "test_error")), "K4": k4(final(runs, "test_loss"))}
    p_values = {name: judgement.p_value for name, judgement in judged.items()}
    equivalences = {
        f"{name}, equivalence": judgement.p_equivalent
        for name, judgement in judged.items()
        if judgement.p_equivalent is not None
    }
    return judged, holm({**p_values, **equivalences})


def _after_holm(runs: Runs) -> dict[str, str]:
    """Return the verdicts on the secondary questions that Holm's correction leaves."""
    judged, adjusted = _secondary(runs)
    left = {}
    for name, judgement in judged.items():
        if adjusted.get(f"{name}, equivalence", 1.0) < LEVEL:
            left[name] = "equivalent"
        elif adjusted[name] < LEVEL:
            left[name] = "better" if judgement.mean < 0 else "worse"
        else:
            left[name] = "undecided"
    return left


def _verdicts(runs: Runs) -> str:
    loss = final(runs, "test_loss")
    secondary, adjusted = _secondary(runs)
    left = _after_holm(runs)
    judged = {
        "K2": ("SRS minus reshuffling, test log-loss", k2(loss)),
        "K3": ("SRS minus the mean of reshuffling and replacement, test error", secondary["K3"]),
        "K4": ("SRS minus reshuffling at the rate of equal variance, test log-loss", secondary["K4"]),
    }
    columns = (
        Column("", lambda name: name, numeric=False),
        Column("comparison", lambda name: judged[name][0], numeric=False),
        Column("n", lambda name: str(judged[name][1].n)),
        Column("mean, 95 % interval", lambda name: _told(judged[name][1], 2 if name == "K3" else 3)),
        Column("p", lambda name: _p(judged[name][1].p_value)),
        Column("p of equivalence", lambda name: _p(judged[name][1].p_equivalent)),
        Column("p, Holm", lambda name: _p(adjusted.get(name))),
        Column("p of equivalence, Holm", lambda name: _p(adjusted.get(f"{name}, equivalence"))),
        Column("correlation of the pairs", lambda name: _signed(judged[name][1].correlation, 2)),
        Column("by itself", lambda name: judged[name][1].verdict, numeric=False),
        Column("verdict", lambda name: left.get(name, judged[name][1].verdict), numeric=False),
    )
    return "\n".join(table_lines(Table("dose", "Part K", columns, [(name, name) for name in judged])))


def _arms(runs: Runs) -> Table:
    clean, loss, error = clean_loss(runs), final(runs, "test_loss"), final(runs, "test_error")
    columns = (
        Column("arm", lambda arm: Cell(ARMS[arm]), numeric=False),
        Column("n", lambda arm: str(len(runs[arm]))),
        Column("diverged", lambda arm: str(sum(run.status == "diverged" for run in runs[arm]))),
        Column(f"clean training loss after epoch {K1_EPOCH}", lambda arm: _mean(clean[arm], 3)),
        Column("final test log-loss", lambda arm: _mean(loss[arm], 3)),
        Column("final test error, %", lambda arm: _mean(error[arm], 2)),
    )
    return Table("dose-arms", "The arms of part K", columns, [(arm, arm) for arm in ARMS])


def _origin(runs: Runs) -> str:
    ended = [run for arm in runs.values() for run in arm]
    commands, commits = ({str(run.told(name)) for run in ended} for name in ("command", "commit"))
    times = [str(run.told(name)) for run in ended for name in ("started_at", "ended_at")]
    hours = sum(run.number("seconds") or 0.0 for run in ended) / 3600
    return (
        f"{len(ended)} runs, {hours:.1f} hours of wall-clock time in all, from {min(times)[:16].replace('T', ' ')} to "
        f"{max(times)[:16].replace('T', ' ')} UTC; {', '.join(f'`{command}`' for command in sorted(commands))} "
        f"at commit {', '.join(f'`{commit}`' for commit in sorted(commits))}."
    )


def _row(arm: str, values: Values) -> ForestRow:
    difference = paired_difference(*(dict(enumerate(values[name])) for name in (arm, "reshuffling")))
    interval = difference.interval()
    assert difference.mean is not None
    assert interval is not None
    numbers = f"{_signed(difference.mean)} ({_signed(interval.low)} to {_signed(interval.high)})"
    return ForestRow(ARMS[arm], difference.mean, interval, numbers, order=_order(arm), strong=arm == "srs")


def _order(arm: str) -> str:
    return PARTS["K"].arms[arm].order


def _hundredths(values: Values) -> Values:
    return {arm: [value / 100 for value in numbers] for arm, numbers in values.items()}


def _kept(run: RunRecord, name: str, value: float | None) -> float:
    """Return the value, or that of guessing where the run diverged."""
    if value is None and run.status != "diverged":
        raise ValueError(f"{run.path} should have a {name} after its last epoch, but has none; run it again")
    return GUESSING[name] if value is None else value


def _mean(values: Sequence[float], digits: int) -> str:
    found = mean_with_interval(values)
    assert found.interval is not None
    return f"{found.value:.{digits}f} ({found.interval.low:.{digits}f} to {found.interval.high:.{digits}f})"


def _told(judged: Judgement, digits: int = 3) -> str:
    low, high = judged.interval
    return f"{_signed(judged.mean, digits)} ({_signed(low, digits)} to {_signed(high, digits)}, n = {judged.n})"


def _signed(value: float, digits: int = 3) -> str:
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def _p(value: float | None) -> str:
    if value is None:
        return "–"  # noqa: RUF001
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"
