"""The generated parts of docs/second_study.md on F and E: full images, trained for ten epochs and for a few."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from replenish.lab.show import Column, Table
from replenish.lab.show.markdown import table_lines
from study.second.arms import FEW_EPOCHS
from study.second.records import PartRecords, effect, mean, p_text, signed
from study.second.rules import (
    FEW_EPOCHS_ORDER,
    FULL_ERROR_MARGIN,
    FULL_LOG_LOSS_MARGIN,
    LEVEL,
    Judgement,
    Values,
    corrected,
    e1,
    e2,
    f1,
    f2,
    paired,
)

#: The arms of part F.
ARMS = {
    "reshuffling": "reshuffling",
    "srs": "SRS, k = 1",
    "reshuffling-equal-variance": "reshuffling, rate 0.177",
}
#: The verdict on a difference that should shrink.
_SHRINKS = {"better": "it shrank", "worse": "it grew", "undecided": "undecided"}


def secondary(few: PartRecords) -> dict[str, float]:
    """Return the p-values of E's questions, all secondary; an empty dict before the last run has ended."""
    if not few.complete:
        return {}
    errors = few.final("test_error")
    return {"E1": e1(_after(errors, 1)), "E2": e2(_after(errors, 1), _after(errors, 4)).p_value}


def full_parts(records: PartRecords) -> dict[str, str]:
    """Return part F's generated parts as Markdown, by name."""
    if not records.complete:
        return {"full-headline": records.waiting, "full-verdicts": "", "full-arms": "", "full-runs": ""}
    error, loss = records.final("test_error"), records.final("test_loss")
    first, second = f1(error), f2(loss)
    return {
        "full-headline": "\n".join(
            [
                f"- **F1, test error (primary): {first.verdict}.** SRS minus reshuffling: {effect(first, 2)} points, "
                f"margin {FULL_ERROR_MARGIN}. The paper predicts better; our law predicts equivalent.",
                f"- **F2, test log-loss (co-primary): {second.verdict}.** SRS minus reshuffling: {effect(second, 4)} "
                f"nats, margin {FULL_LOG_LOSS_MARGIN}. Our law predicts equivalent.",
            ]
        ),
        "full-verdicts": "\n".join(table_lines(_verdicts(error, loss))),
        "full-arms": "\n".join(table_lines(_arms(records))),
        "full-runs": records.origin,
    }


def few_parts(records: PartRecords, adjusted: Mapping[str, float]) -> dict[str, str]:
    """Return part E's generated parts as Markdown, by name; `adjusted` has the p-values after Holm."""
    if not records.complete:
        return {"few-headline": records.waiting, "few-arms": "", "few-runs": ""}
    errors = records.final("test_error")
    one, four = _after(errors, 1), _after(errors, 4)
    means = [fmean(one[order]) for order in FEW_EPOCHS_ORDER]
    rank = "as predicted" if means == sorted(means) else "not exactly as predicted"
    held = "held" if adjusted["E1"] < LEVEL else "did not hold"
    shrinks = e2(one, four)
    return {
        "few-headline": "\n".join(
            [
                f"- **E1, the order after one epoch (ours): {held}.** Page's trend test gives p = {p_text(e1(one))}, "
                f"{p_text(adjusted['E1'])} after Holm; the means are ordered {rank}.",
                f"- **E2, SRS minus reshuffling, after four epochs against after one: "
                f"{_SHRINKS[corrected('E2', shrinks, adjusted)]}.** The difference changed by {effect(shrinks, 2)} "
                f"points; p = {p_text(shrinks.p_value)}, {p_text(adjusted['E2'])} after Holm.",
            ]
        ),
        "few-arms": "\n".join(table_lines(_lengths(errors))),
        "few-runs": records.origin,
    }


def _verdicts(error: Values, loss: Values) -> Table:
    larger_rate = "reshuffling-equal-variance"
    judged: dict[str, tuple[str, Judgement, int]] = {
        "F1": ("SRS minus reshuffling, test error in points", f1(error), 2),
        "F2": ("SRS minus reshuffling, test log-loss", f2(loss), 4),
        "exploratory, error": (
            "SRS minus reshuffling at the rate of equal variance, test error in points",
            paired(error["srs"], error[larger_rate], FULL_ERROR_MARGIN),
            2,
        ),
        "exploratory, log-loss": (
            "SRS minus reshuffling at the rate of equal variance, test log-loss",
            paired(loss["srs"], loss[larger_rate], FULL_LOG_LOSS_MARGIN),
            4,
        ),
    }
    columns = (
        Column("", lambda name: name, numeric=False),
        Column("comparison", lambda name: judged[name][0], numeric=False),
        Column("n", lambda name: str(judged[name][1].n)),
        Column("mean, 95 % interval", lambda name: effect(judged[name][1], judged[name][2])),
        Column("p", lambda name: p_text(judged[name][1].p_value)),
        Column("p of equivalence", lambda name: p_text(judged[name][1].p_equivalent)),
        Column("correlation of the pairs", lambda name: signed(judged[name][1].correlation, 2)),
        Column("verdict", lambda name: judged[name][1].verdict, numeric=False),
    )
    return Table("full", "Part F", columns, [(name, name) for name in judged])


def _arms(records: PartRecords) -> Table:
    error, loss, train = (records.final(name) for name in ("test_error", "test_loss", "train_loss"))
    columns = (
        Column("arm", lambda arm: ARMS[arm], numeric=False),
        Column("n", lambda arm: str(len(records.arms[arm]))),
        Column("diverged", lambda arm: str(records.diverged(arm))),
        Column("final test error, %", lambda arm: mean(error[arm], 2)),
        Column("final test log-loss", lambda arm: mean(loss[arm], 4)),
        Column("online training loss, last epoch", lambda arm: mean(train[arm], 4)),
    )
    return Table("full-arms", "The arms of part F", columns, [(arm, arm) for arm in ARMS])


def _lengths(errors: Values) -> Table:
    def minus(epochs: int, order: str) -> str:
        after = _after(errors, epochs)
        return effect(paired(after[order], after["reshuffling"]), 2)

    def of(order: str) -> Column:
        return Column(f"{order}, test error, %", lambda epochs: mean(_after(errors, epochs)[order], 2))

    columns = (
        Column("effective epochs", str),
        *map(of, FEW_EPOCHS_ORDER),
        Column("SRS minus reshuffling, points", lambda epochs: minus(epochs, "srs")),
        Column("replacement minus reshuffling, points", lambda epochs: minus(epochs, "replacement")),
    )
    return Table("few", "Part E", columns, [(str(epochs), epochs) for epochs in FEW_EPOCHS])


def _after(errors: Values, epochs: int) -> Values:
    """Return the errors of the runs with this many epochs, by order."""
    return {order: errors[f"{order}-{epochs}"] for order in FEW_EPOCHS_ORDER}
