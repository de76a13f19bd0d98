"""The charts of an inspection as a PNG, by matplotlib."""

from __future__ import annotations

import io
import textwrap

import numpy as np

from replenish.lab.inspection.charts import charts
from replenish.lab.inspection.results import Inspection

COLOURS = {
    "srs": "#1f5fc4",
    "reshuffling": "#b4560f",
    "replacement": "#0f7b5f",
    "identity": "#a9306f",
    "law": "#20252e",
}
_MARKS = {"srs": "o", "reshuffling": "s", "replacement": "D"}


def picture(inspection: Inspection) -> bytes:
    """Return the PNG: the four charts in two rows."""
    from matplotlib.figure import Figure

    order = inspection.order
    figure = Figure(figsize=(12, 9), layout="constrained")
    figure.suptitle(
        f"N = {order.num_samples:,}, B = {order.batch_size:,}, pool of {order.pool_size:,}, "
        f"{inspection.epochs} effective epochs, seed {order.seed}"
    )
    for axis, chart in zip(figure.subplots(2, 2).flat, charts(inspection), strict=True):
        for series in chart.series:
            law = series.role == "law"
            x, y = series.x + (chart.part / 2 if law else 0.0), series.y
            if chart.steps and not law:  # the last part has a length too
                x, y = np.append(x, x[-1] + chart.part), np.append(y, y[-1])
            axis.plot(
                x,
                y,
                label=series.name,
                color=COLOURS[series.role],
                linestyle=":" if law else "-",
                linewidth=2.2 if law else 1.0 if series.fine else 1.8,
                marker=None if chart.steps or series.fine else _MARKS.get(series.role),
                markersize=4,
                drawstyle="steps-post" if chart.steps and not law else "default",
            )
        axis.set_xlim(*chart.x_range)
        axis.set_ylim(chart.y_range[0], 1.2 * chart.y_range[1])  # room for the legend
        for height, label in chart.levels:
            axis.axhline(height, color="#6b7280", linestyle="--", linewidth=0.8)
            side = "bottom" if chart.label_above(height) else "top"
            axis.annotate(label, (1, height), xycoords=("axes fraction", "data"), ha="right", va=side, fontsize=8)
        axis.set_title(chart.title, loc="left", fontweight="bold")
        axis.set_xlabel(f"{chart.x_label}\n\n{textwrap.fill(chart.caption, 84)}", fontsize=9)
        axis.set_ylabel(chart.y_label)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, ncols=3, loc="upper center")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    return content.getvalue()
