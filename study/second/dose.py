"""Part K's generated parts of docs/second_study.md, and its picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import fmean

from replenish.lab.show import Column, Table
from replenish.lab.show.markdown import table_lines
from replenish.lab.statistics import paired_difference
from study.pictures import ForestRow, forest_picture
from study.second.arms import PARTS
from study.second.records import PartRecords, effect, kept, mean, p_text, signed
from study.second.rules import (
    K1_EPOCH,
    LEVEL,
    LOG_LOSS_MARGIN,
    PREDICTED_ORDER,
    Values,
    corrected,
    k1,
    k2,
    k3,
    k4,
    paired,
    trend,
)

PICTURE = "second_study_dose.svg"
#: The arms of part K in the predicted order. The last one has another learning rate.
ARMS = {
    "shuffle-once": "shuffle once",
    "srs-quarter": "SRS, k = 1/4",
    "reshuffling": "reshuffling",
    "srs": "SRS, k = 1",
    "srs-four": "SRS, k = 4",
    "replacement": "batched replacement",
    "reshuffling-equal-variance": "reshuffling, rate 0.203",
}
#: K3 has no margin, so its verdict can only be better, worse or undecided.
_K3 = {"better": "seen here", "worse": "the opposite was seen", "undecided": "undecided"}
#: K4 predicts equivalence.
_K4 = {
    "equivalent": "held",
    "better": "did not hold, SRS ended lower",
    "worse": "did not hold, the larger rate ended lower",
    "undecided": "undecided",
}


def secondary(records: PartRecords) -> dict[str, float]:
    """Return the p-values of K's secondary questions; an empty dict before the last run has ended."""
    if not records.complete:
        return {}
    fourth = k4(records.final("test_loss"))
    assert fourth.p_equivalent is not None
    return {
        "K3": k3(records.final("test_error")).p_value,
        "K4": fourth.p_value,
        "K4, equivalence": fourth.p_equivalent,
    }


def parts(records: PartRecords, adjusted: Mapping[str, float]) -> dict[str, str]:
    """Return the page's generated parts as Markdown, by name; `adjusted` has the p-values after Holm."""
    if not records.complete:
        return {"dose-headline": records.waiting} | dict.fromkeys(
            ("dose-verdicts", "dose-arms", "dose-exploratory", "dose-runs"), ""
        )
    return {
        "dose-headline": _headline(records, adjusted),
        "dose-verdicts": "\n".join(table_lines(_verdicts(records, adjusted))),
        "dose-arms": "\n".join(table_lines(_arms(records))),
        "dose-exploratory": "\n".join([_without_shuffle_once(records), "", *table_lines(_beside_reshuffling(records))]),
        "dose-runs": records.origin,
    }


def clean_loss(records: PartRecords) -> Values:
    """Return the clean training loss before the first decay of the learning rate."""
    return {
        arm: [kept(run, "clean_loss", run.metrics[K1_EPOCH - 1]["clean_loss"]) for run in runs]
        for arm, runs in records.arms.items()
    }


def picture(records: PartRecords) -> str | None:
    """Return a forest plot of every arm minus reshuffling in two losses; None before the last run has ended."""
    if not records.complete:
        return None
    rows = []
    for title, values in (
        (f"Clean training loss after epoch {K1_EPOCH}, nats", clean_loss(records)),
        ("Final test log-loss, nats", records.final("test_loss")),
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


def _headline(records: PartRecords, adjusted: Mapping[str, float]) -> str:
    loss, clean = records.final("test_loss"), clean_loss(records)
    p, second, third, fourth = k1(clean), k2(loss), k3(records.final("test_error")), k4(loss)
    held = "held" if p < LEVEL else "did not hold"
    means = [fmean(clean[arm]) for arm in PREDICTED_ORDER]
    rank = "are in the predicted order" if means == sorted(means) else "are not in the predicted order"
    return "\n".join(
        [
            f"- **K1, our law (primary): {held}.** Page's trend test over the six arms gives p = {p_text(p)}; the "
            f"arms' means {rank}.",
            f"- **K2, test log-loss (co-primary): {second.verdict}.** SRS minus reshuffling: {effect(second)} nats, "
            f"margin {LOG_LOSS_MARGIN}.",
            f"- **K3, an optimum in between: {_K3[corrected('K3', third, adjusted)]}.** SRS minus the mean of "
            f"reshuffling and replacement: {effect(third, 2)} points of test error.",
            f"- **K4, a larger learning rate does the same to log-loss (ours): "
            f"{_K4[corrected('K4', fourth, adjusted)]}.** SRS minus reshuffling at the rate of equal variance: "
            f"{effect(fourth)} nats, margin {LOG_LOSS_MARGIN}.",
        ]
    )


def _verdicts(records: PartRecords, adjusted: Mapping[str, float]) -> Table:
    loss = records.final("test_loss")
    judged = {
        "K2": ("SRS minus reshuffling, test log-loss", k2(loss)),
        "K3": ("SRS minus the mean of reshuffling and replacement, test error", k3(records.final("test_error"))),
        "K4": ("SRS minus reshuffling at the rate of equal variance, test log-loss", k4(loss)),
    }
    left = {
        name: judged[name][1].verdict if name == "K2" else corrected(name, judged[name][1], adjusted) for name in judged
    }
    columns = (
        Column("", lambda name: name, numeric=False),
        Column("comparison", lambda name: judged[name][0], numeric=False),
        Column("n", lambda name: str(judged[name][1].n)),
        Column("mean, 95 % interval", lambda name: effect(judged[name][1], 2 if name == "K3" else 3)),
        Column("p", lambda name: p_text(judged[name][1].p_value)),
        Column("p of equivalence", lambda name: p_text(judged[name][1].p_equivalent)),
        Column("p, Holm", lambda name: p_text(adjusted.get(name))),
        Column("p of equivalence, Holm", lambda name: p_text(adjusted.get(f"{name}, equivalence"))),
        Column("correlation of the pairs", lambda name: signed(judged[name][1].correlation, 2)),
        Column("by itself", lambda name: judged[name][1].verdict, numeric=False),
        Column("verdict", lambda name: left[name], numeric=False),
    )
    return Table("dose", "Part K", columns, [(name, name) for name in judged])


def _arms(records: PartRecords) -> Table:
    clean, loss, error = clean_loss(records), records.final("test_loss"), records.final("test_error")
    columns = (
        Column("arm", lambda arm: ARMS[arm], numeric=False),
        Column("n", lambda arm: str(len(records.arms[arm]))),
        Column("diverged", lambda arm: str(records.diverged(arm))),
        Column(f"clean training loss after epoch {K1_EPOCH}", lambda arm: mean(clean[arm], 3)),
        Column("final test log-loss", lambda arm: mean(loss[arm], 3)),
        Column("final test error, %", lambda arm: mean(error[arm], 2)),
    )
    return Table("dose-arms", "The arms of part K", columns, [(arm, arm) for arm in ARMS])


def _without_shuffle_once(records: PartRecords) -> str:
    """Return K1's trend over the other five arms: shuffle once repeats its batches, which batch norm sees."""
    clean, five = clean_loss(records), PREDICTED_ORDER[1:]
    falls = [
        f"{ARMS[two]} is below {ARMS[one]}" for one, two in pairwise(five) if fmean(clean[two]) < fmean(clean[one])
    ]
    exceptions = f", except that {' and '.join(falls)}" if falls else ""
    return (
        f"Without shuffle once, Page's test over the other five arms gives p = {p_text(trend(clean, five))}, and their "
        f"means rise as predicted{exceptions}. Each arm minus reshuffling, n = {len(clean['reshuffling'])}, with 95 % "
        f"intervals that are not corrected for their number:"
    )


def _beside_reshuffling(records: PartRecords) -> Table:
    """Return what each arm does beside reshuffling; nobody asked for it before the runs."""
    online = {
        arm: [kept(run, "train_loss", run.metrics[K1_EPOCH - 1]["train_loss"]) for run in runs]
        for arm, runs in records.arms.items()
    }

    def difference(values: Values, digits: int) -> Callable[[str], str]:
        return lambda arm: effect(paired(values[arm], values["reshuffling"]), digits, with_n=False)

    columns = (
        Column("arm", lambda arm: ARMS[arm], numeric=False),
        Column(f"online training loss, epoch {K1_EPOCH}", difference(online, 3)),
        Column(f"clean training loss, epoch {K1_EPOCH}", difference(clean_loss(records), 3)),
        Column("final test log-loss", difference(records.final("test_loss"), 3)),
        Column("final test error, points", difference(records.final("test_error"), 2)),
    )
    rows = [(arm, arm) for arm in ARMS if arm != "reshuffling"]
    return Table("dose-exploratory", "Each arm minus reshuffling", columns, rows)


def _row(arm: str, values: Values) -> ForestRow:
    difference = paired_difference(*(dict(enumerate(values[name])) for name in (arm, "reshuffling")))
    interval = difference.interval()
    assert difference.mean is not None
    assert interval is not None
    numbers = f"{signed(difference.mean)} ({signed(interval.low)} to {signed(interval.high)})"
    order = PARTS["K"].arms[arm].order
    return ForestRow(ARMS[arm], difference.mean, interval, numbers, order=order, strong=arm == "srs")
