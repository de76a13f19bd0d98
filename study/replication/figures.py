"""The study's pictures: error against learning rate, a forest of all comparisons, and the two training losses."""

from __future__ import annotations

import statistics

from replenish.lab.show import Chart, Figure, Series
from replenish.lab.statistics import mean_with_interval
from replenish.lab.verdict import signed
from study.decisive import PUBLISHED
from study.pictures import ForestRow, figure_picture, forest_picture
from study.replication.evidence import Evidence
from study.replication.judgement import Judged, Judgement
from study.replication.plan import MARGIN
from study.replication.training_loss import ARMS as LOSS_ARMS
from study.replication.training_loss import metric_by_epoch

RATES = ("low", "paper", "high")
_RATE_NAMES = ("0.1/√3", "0.1", "0.1√3")
#: Horizontal offsets of the orders' marks, so that their whiskers do not overlap.
_ASIDE = {"reshuffling": -0.04, "srs": 0.04, "replacement": 0.12}
_NAMES = {"srs": "SRS", "reshuffling": "reshuffling", "replacement": "batched replacement"}
_GROUPS = (
    ("Does SRS lower the error?", ("primary", "augmented", "mini")),
    ("Is it a larger learning rate?", ("shift-low", "shift-high", "rate-low", "rate-high")),
    ("Does it depend on the unit, the images a class?", ("unit", "unit-interaction", "coarse", "coarse-interaction")),
    ("Other orders", ("replacement", "control")),
)


def rates_picture(evidence: Evidence) -> str:
    """Return the curves of error against learning rate, with 95 % intervals of the means, without arms not yet run."""
    series = [_curve(evidence, order) for order in ("reshuffling", "srs")]
    larger = [evidence.arms[f"rates/reshuffling-{rate}"] for rate in RATES[1:]]
    shifted = [statistics.fmean(arm.errors().values()) if arm.runs else None for arm in larger]
    series.append(Series("SRS, if it were reshuffling at √3 times the rate", (0.04, 1.04), shifted, kind="law"))
    if evidence.arms["rates/replacement-paper"].runs:
        series.append(_curve(evidence, "replacement"))
    chart = Chart(
        "rates",
        "learning rate",
        "Test error (%), mean with 95 % interval",
        tuple(series),
        x_names=_RATE_NAMES,
        from_zero=False,
    )
    return figure_picture(Figure("rates", "Test error against learning rate", "", (chart,)))


def forest(judgement: Judgement) -> str:
    """Return the forest plot of all comparisons, whether they have been run or not."""
    rows = []
    for title, names in _GROUPS:
        rows.append(ForestRow(title, heading=True))
        rows += [_row(judgement[name]) for name in names]
    return forest_picture(
        "Differences in test error, in points, with 95 % intervals",
        rows,
        MARGIN,
        "← first is better · points · second is better →",
        f"Grey band: ±{MARGIN:g}. The paper, first row: {signed(PUBLISHED)}",
    )


def losses_picture(evidence: Evidence) -> str:
    """Return the online and the clean training loss of SRS and reshuffling: median and range over the seeds."""
    charts = []
    for name, label in (("train_loss", "Loss while training (online)"), ("clean_loss", "Clean loss, dropout off")):
        series = []
        for arm in reversed(LOSS_ARMS):
            runs = evidence.arms[arm]
            by_epoch = metric_by_epoch(runs, name)
            middle, low, high = (
                [pick(values.values()) for values in by_epoch.values()] for pick in (statistics.median, min, max)
            )
            order = runs.arm.config.order
            series.append(
                Series(_NAMES[order], list(by_epoch), middle, low, high, order=order, note=f"n = {len(runs.runs)}")
            )
        charts.append(Chart(name, "effective epoch", label, tuple(series), x_range=(0, 60), whole=True))
    return figure_picture(Figure("losses", "Training loss: online and clean", "", tuple(charts)))


def _curve(evidence: Evidence, order: str) -> Series:
    places = [(index, evidence.arms.get(f"rates/{order}-{rate}")) for index, rate in enumerate(RATES)]
    known = [(index, arm) for index, arm in places if arm is not None and arm.runs]
    found = [mean_with_interval(arm.errors().values()) for _, arm in known]
    return Series(
        _NAMES[order],
        [index + _ASIDE[order] for index, _ in known],
        [each.value for each in found],
        [None if each.interval is None else each.interval.low for each in found],
        [None if each.interval is None else each.interval.high for each in found],
        order=order,
        note=f"n = {', '.join(str(len(arm.runs)) for _, arm in known)}" if known else "not run yet",
        whiskers=True,
    )


def _row(judged: Judged) -> ForestRow:
    effect = judged.effect
    interval = None if effect is None else effect.interval()
    ends = "" if interval is None else f" [{signed(interval.low)}, {signed(interval.high)}]"
    return ForestRow(
        judged.comparison.label,
        None if effect is None else effect.mean,
        interval,
        "" if effect is None else f"{signed(effect.mean)}{ends}",
        judged.verdict,
        order=_order(judged.comparison.name),
        strong=judged.comparison.name == "primary",
        provisional=not judged.complete,
    )


def _order(name: str) -> str:
    return "replacement" if name == "replacement" else "reshuffling" if name.startswith(("rate", "control")) else "srs"
