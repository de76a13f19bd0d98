"""The paper's figures 2 and 3, the curves of any runs over effective epochs, and the errors of every seed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from replenish.lab import paper
from replenish.lab.report.grouping import Group
from replenish.lab.show import Chart, Figure, Reference, Series, pairs_figure

_CAPTION = (
    "Lines are means over the seeds that finished, bands run from the smallest to the largest, and vertical dashes "
    "mark where the learning rate drops."
)

#: The panels: name in the metrics, label and decimals. A quantity that no run has gets no panel.
QUANTITIES = {"train_loss": ("Training loss", 3), "test_error": ("Test error (%)", 2)}


def paper_figure(figure: paper.Figure, groups: Mapping[str, Group], scale: str) -> Figure | None:
    """Return a figure of the paper with the lines that have runs, or None if none has."""
    lines = {label: groups[name] for name, label in figure.lines if name in groups}
    missing = [label for name, label in figure.lines if name not in groups]
    remark = f" No runs yet of: {', '.join(missing)}." if missing else ""
    if scale != "full":
        remark = " The schedules are named as in the paper and scaled to this scale's epochs." + remark
    return curves(lines, name=f"{scale}-{figure.name}", title=figure.title, remark=remark)


def curves(
    lines: Mapping[str, Group], *, name: str, title: str = "Training loss and test error", remark: str = ""
) -> Figure | None:
    """Return the curves of groups by label, or None if no finished run has metrics."""
    lines = {label: group for label, group in lines.items() if any(run.metrics for run in group.finished)}
    metrics = [line for group in lines.values() for run in group.finished for line in run.metrics]
    charts = tuple(
        _chart(quantity, lines) for quantity in QUANTITIES if any(line.get(quantity) is not None for line in metrics)
    )
    return Figure(name, title, _CAPTION + remark, charts) if charts else None


def _chart(quantity: str, lines: Mapping[str, Group]) -> Chart:
    y_label, decimals = QUANTITIES[quantity]
    drops = sorted({drop for group in lines.values() for drop in group.config.decays})
    return Chart(
        quantity,
        "effective epoch",
        y_label,
        tuple(_series(quantity, label, group) for label, group in lines.items()),
        tuple(Reference(drop, upright=True) for drop in drops),
        x_range=(0.0, float(max(group.config.epochs for group in lines.values()))),
        from_zero=False,
        whole=True,
        decimals=decimals,
    )


def _series(quantity: str, label: str, group: Group) -> Series:
    finished = group.finished
    epochs = sorted({int(line["epoch"]) for run in finished for line in run.metrics})
    by_epoch: dict[int, list[float]] = {epoch: [] for epoch in epochs}
    for run in finished:
        for line in run.metrics:
            if (value := line.get(quantity)) is not None:
                by_epoch[line["epoch"]].append(value)
    seeds = [by_epoch[epoch] for epoch in epochs]
    several = len(finished) > 1
    drops = ", ".join(f"{drop:g}" for drop in group.config.decays)
    return Series(
        label,
        epochs,
        [statistics.fmean(values) if values else None for values in seeds],
        [min(values, default=None) for values in seeds] if several else (),
        [max(values, default=None) for values in seeds] if several else (),
        order=group.config.order,
        note=f"n = {len(finished)}" + (f" · drops at {drops}" if drops else ""),
    )


def seeds_figure(orders: Mapping[str, Group], name: str, remark: str = "") -> Figure | None:
    """Return a figure of every seed's test error by order; None if fewer than two orders have errors."""
    kept = {label: group.errors for label, group in orders.items() if group.errors}
    caption = "Test error at the last epoch; a line joins the runs of one seed, which share their initial weights."
    looks = {label: orders[label].config.order for label in kept}
    return pairs_figure(kept, looks, "Test error (%)", name, caption + remark) if len(kept) > 1 else None
