"""Figures 2 and 3, and curves of any runs: training loss and test error against the effective epoch."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from replenish.lab.experiments import paper
from replenish.lab.report.document import NOTHING, Cell, Column, Figure, Line, Row, Series, Stray, Table
from replenish.lab.report.grouping import Group
from replenish.lab.report.reading import RunRecord

_CAPTION = (
    "Lines are medians over the seeds that finished, bands run from the smallest to the largest, and dashed uprights "
    "mark where the learning rate drops. The first epochs may rise above the panel."
)
_STRAYS = " Thin dotted lines are single runs that diverged or have not finished."
#: Epochs in the tables that stand for figures in Markdown.
_FEW_EPOCHS = 10
QUANTITIES = (("train_loss", "Training loss"), ("test_error", "Test error (%)"))


def paper_figure(figure: paper.Figure, groups: Mapping[str, Group], scale: str) -> Figure | None:
    """Return a figure of the paper over the lines that have runs, or None if none has."""
    lines = [(name, label, groups[name]) for name, label in figure.lines if name in groups]
    missing = [label for name, label in figure.lines if name not in groups]
    remark = f" No runs yet of: {', '.join(missing)}." if missing else ""
    if scale != "full":
        remark = " The schedules are named as in the paper and scaled to this scale's epochs." + remark
    return curves(lines, name=f"{scale}-{figure.name}", title=figure.title, remark=remark)


def curves(lines: Sequence[tuple[str, str, Group]], *, name: str, title: str, remark: str = "") -> Figure | None:
    """Return the curves of some groups, or None if they have no epoch to show.

    Args:
        lines: (name, label, group) of each line.
        name: The name of the figure.
        title: Its title.
        remark: Added to the caption.
    """
    made = tuple(_line(line_name, label, group) for line_name, label, group in lines)
    if not any(line.epochs or any(stray.epochs for stray in line.strays) for line in made):
        return None
    strays = _STRAYS if any(line.strays for line in made) else ""
    last = max(group.config.epochs for _, _, group in lines)
    return Figure(name, title, _CAPTION + strays + remark, made, last)


def _line(name: str, label: str, group: Group) -> Line:
    finished = group.finished
    epochs = sorted({int(line["epoch"]) for run in finished for line in run.metrics})
    strays = tuple(_stray(run) for run in group.runs if run.status != "finished" and run.metrics)
    return Line(
        name=name,
        label=label,
        runs=tuple(run.path for run in finished),
        drops=group.config.decays,
        epochs=tuple(epochs),
        train_loss=_series(finished, epochs, "train_loss"),
        test_error=_series(finished, epochs, "test_error"),
        strays=strays,
    )


def _series(runs: Sequence[RunRecord], epochs: Sequence[int], quantity: str) -> Series:
    by_epoch: dict[int, list[float]] = {epoch: [] for epoch in epochs}
    for run in runs:
        for line in run.metrics:
            if (value := line.get(quantity)) is not None:
                by_epoch[line["epoch"]].append(value)
    values = [by_epoch[epoch] for epoch in epochs]
    return Series(
        median=tuple(statistics.median(seeds) if seeds else None for seeds in values),
        low=tuple(min(seeds, default=None) for seeds in values),
        high=tuple(max(seeds, default=None) for seeds in values),
    )


def _stray(run: RunRecord) -> Stray:
    return Stray(
        path=run.path,
        status=run.status,
        epochs=tuple(int(line["epoch"]) for line in run.metrics),
        train_loss=tuple(line.get("train_loss") for line in run.metrics),
        test_error=tuple(line.get("test_error") for line in run.metrics),
    )


def values_table(figure: Figure, *, few: bool) -> Table:
    """Return the values of a figure: medians, with the smallest and the largest.

    Args:
        figure: The figure.
        few: Whether about ten epochs are enough: the first, the last, those at the drops and some between.
    """
    lines = [line for line in figure.lines if line.epochs]
    epochs = sorted({epoch for line in lines for epoch in line.epochs})
    if few and len(epochs) > _FEW_EPOCHS:
        drops = {int(drop) for line in lines for drop in line.drops}
        spaced = {epochs[round(part * (len(epochs) - 1) / 5)] for part in range(6)}
        epochs = [epoch for epoch in epochs if epoch in drops | spaced]
    columns = [Column("Epoch", numeric=True)]
    columns += [
        Column(line.label, f"n = {len(line.runs)}", group=title, numeric=True)
        for _, title in QUANTITIES
        for line in lines
    ]
    rows = []
    for epoch in epochs:
        cells = [Cell(str(epoch))]
        cells += [_value(line, quantity, epoch) for quantity, _ in QUANTITIES for line in lines]
        rows.append(Row(f"epoch {epoch}", tuple(cells)))
    return Table(f"{figure.name}-values", "Values", "Median (smallest to largest).", tuple(columns), tuple(rows))


def _value(line: Line, quantity: str, epoch: int) -> Cell:
    if epoch not in line.epochs:
        return Cell(NOTHING)
    at, series = line.epochs.index(epoch), getattr(line, quantity)
    median, low, high = series.median[at], series.low[at], series.high[at]
    if median is None:
        return Cell(NOTHING)
    digits = 3 if quantity == "train_loss" else 2
    text = f"{median:.{digits}f}"
    return Cell(text if len(line.runs) < 2 else f"{text} ({low:.{digits}f} to {high:.{digits}f})")
