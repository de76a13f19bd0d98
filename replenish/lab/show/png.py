"""Figures as a PNG, by matplotlib: the charts that a page draws, with the same colours and marks."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from replenish.lab.show.chart import Chart, Figure, Series
from replenish.lab.show.svg import label_above
from replenish.palette import COLOURS, DASHES, MATPLOTLIB_MARKS

INK, SOFT = COLOURS["ink"][0], COLOURS["soft"][0]


def figures_png(figures: Sequence[Figure], heading: str) -> bytes:
    """Return a picture of some figures, each of one chart, two beside each other, beneath a heading."""
    from matplotlib.figure import Figure as Canvas

    rows = -(-len(figures) // 2)
    canvas = Canvas(figsize=(12, 4.5 * rows), layout="constrained")
    canvas.suptitle(heading)
    places = list(canvas.subplots(rows, 2, squeeze=False).flat)
    for empty in places[len(figures) :]:
        empty.set_axis_off()
    for axis, figure in zip(places, figures, strict=False):
        (chart,) = figure.charts
        draw(axis, chart)
        axis.set_title(figure.title, loc="left", fontweight="bold")
        axis.set_xlabel(f"{chart.x_label}\n\n{textwrap.fill(figure.caption, 84)}", fontsize=9)
    content = io.BytesIO()
    canvas.savefig(content, format="png", dpi=130)
    return content.getvalue()


def draw(axis: Any, chart: Chart) -> None:
    """Draw a chart on axes of matplotlib."""
    for series in chart.series:
        _draw_series(axis, chart, series)
    low, high, _ = chart.y_ends
    if chart.log:
        axis.set_xscale("log")
    axis.set_xlim(*chart.x_ends)
    axis.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
    if chart.x_names:
        axis.set_xticks(range(len(chart.x_names)), chart.x_names)
    for reference in chart.references:
        if reference.upright:
            axis.axvline(reference.value, color=SOFT, linestyle="--", linewidth=0.8)
            continue
        axis.axhline(reference.value, color=SOFT, linestyle="--", linewidth=0.8)
        side = "bottom" if label_above(chart, reference.value) else "top"
        where = (1, reference.value)
        axis.annotate(reference.label, where, xycoords=("axes fraction", "data"), ha="right", va=side, fontsize=8)
    axis.set_xlabel(chart.x_label)
    axis.set_ylabel(chart.y_label)
    axis.grid(alpha=0.25)
    axis.legend(fontsize=8, ncols=3, loc="upper center")


def _draw_series(axis: Any, chart: Chart, series: Series) -> None:
    look, dash = chart.looks[series.name]
    law, colour = series.kind == "law", INK if look is None else look.light
    x = [at + (chart.part / 2 if law else 0.0) for at in series.x]
    y = [float("nan") if value is None else value for value in series.y]
    if series.kind == "steps":  # the last part has a length too
        x, y = [*x, x[-1] + chart.part], [*y, y[-1]]
    bands = list(series.band())
    if bands and series.whiskers:
        axis.vlines(*zip(*bands, strict=True), color=colour, linewidth=1.2)
    elif bands:
        axis.fill_between(*zip(*bands, strict=True), color=colour, alpha=0.16, linewidth=0)
    dashes = tuple(map(float, DASHES[dash].split())) if dash else ()
    style: Any = ":" if law or series.kind == "stray" else "none" if series.kind == "points" else "-"
    axis.plot(
        x,
        y,
        label=f"_{series.name}" if series.kind == "stray" else series.name,
        color=colour,
        linestyle=(0, dashes) if dashes and style == "-" else style,
        linewidth=2.2 if law else 1.0 if series.thin else 1.8,
        marker=MATPLOTLIB_MARKS[look.mark] if look and series.kind in ("line", "points") and not series.thin else None,
        markevery=max(len(x) // 8, 1),
        markersize=4.5,
        drawstyle="steps-post" if series.kind == "steps" else "default",
    )
