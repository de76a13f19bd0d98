"""A chart as inline SVG. Colours are the page's CSS variables, so that light and dark both look right."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise

from replenish.lab.axis import Axis, tick_label, ticks
from replenish.lab.inspection.charts import Chart, Series

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 46, 468, 30, 252
# More points than these and their marks would hide the line.
_MOST_MARKS = 40


def svg(chart: Chart) -> str:
    """Return the chart; its title and its caption are left to the page."""
    x, y = Axis(*chart.x_range, LEFT, RIGHT), Axis(*chart.y_range, BOTTOM, TOP)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{chart.name}-title" '
        f'aria-describedby="{chart.name}-caption">',
        f'<text class="axis" x="4" y="14">{escape(chart.y_label)}</text>',
        f'<text class="axis" x="{RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{escape(chart.x_label)}</text>',
    ]
    for value in ticks(y.low, y.high, 6):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y.at(value):.2f}" y2="{y.at(value):.2f}"/>')
        parts.append(
            f'<text class="tick y" data-value="{value}" x="{LEFT - 7}" y="{y.at(value) + 4:.2f}" text-anchor="end">'
            f"{tick_label(value)}</text>"
        )
    for value in ticks(x.low, x.high, 6, whole=chart.whole):
        parts.append(
            f'<text class="tick x" data-value="{value}" x="{x.at(value):.2f}" y="{BOTTOM + 19}" text-anchor="middle">'
            f"{tick_label(value)}</text>"
        )
    parts += [_level(x, y.at(height), label, above=chart.label_above(height)) for height, label in chart.levels]
    for series in chart.series:
        parts.append(f'<path class="line {_classes(series)}" d="{_path(series, x, y, chart.part)}"/>')
        if _marked(chart, series):
            parts += [_mark(series.role, x.at(at), y.at(value)) for at, value in series.known()]
    parts += _hovers(chart, x)
    return "".join([*parts, "</svg>"])


def swatch(chart: Chart, series: Series) -> str:
    """Return a small picture of the line, for the legend."""
    mark = _mark(series.role, 14, 6) if _marked(chart, series) else ""
    return (
        f'<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true"><path class="line {_classes(series)}" '
        f'd="M1 6H27"/>{mark}</svg>'
    )


def _path(series: Series, x: Axis, y: Axis, part: float) -> str:
    """Return the line. A closed form goes smoothly through the middles of the parts that the others step over."""
    if part == 0 or series.role == "law":
        drawn = [f"{x.at(at + part / 2):.2f} {y.at(value):.2f}" for at, value in series.known()]
    else:
        drawn = [f"{x.at(at):.2f} {y.at(value):.2f}H{x.at(at + part):.2f}" for at, value in series.known()]
    return "M" + "L".join(drawn)


def _marked(chart: Chart, series: Series) -> bool:
    """Say whether the points of a line are marked, each order's in its own shape."""
    return not (chart.steps or series.fine or series.role == "law" or len(series.x) > _MOST_MARKS)


def _classes(series: Series) -> str:
    return f"{series.role} fine" if series.fine else series.role


def _mark(role: str, x: float, y: float) -> str:
    shapes = {
        "reshuffling": f"M{x - 3.2:.2f} {y - 3.2:.2f}h6.4v6.4h-6.4z",
        "replacement": f"M{x:.2f} {y - 4.4:.2f}l4.4 4.4-4.4 4.4-4.4-4.4z",
    }
    if role in shapes:
        return f'<path class="mark {role}" d="{shapes[role]}"/>'
    return f'<circle class="mark {role}" cx="{x:.2f}" cy="{y:.2f}" r="3.6"/>'


def _level(x: Axis, at: float, label: str, *, above: bool) -> str:
    base = at - 7 if above else at + 16
    return (
        f'<line class="level" x1="{x.start}" x2="{x.stop}" y1="{at:.2f}" y2="{at:.2f}"/>'
        f'<text class="level" x="{x.stop}" y="{base:.2f}" text-anchor="end">{escape(label)}</text>'
    )


def _hovers(chart: Chart, x: Axis) -> Iterator[str]:
    """Yield a strip for each place along that tells its values when pointed at."""
    places = sorted({at for series in chart.series for at in series.x.tolist()})
    values = [(series.name, dict(series.known())) for series in chart.series]
    part = chart.part or min((after - at for at, after in pairwise(places)), default=1.0)
    for at in places:
        told = [f"{name}: {known[at]:.4g}" for name, known in values if at in known]
        left = at if chart.steps else at - part / 2
        start, stop = max(x.at(left), x.start), min(x.at(left + part), x.stop)
        yield (
            f'<rect class="hover" x="{start:.2f}" y="{TOP}" width="{stop - start:.2f}" height="{BOTTOM - TOP}">'
            f"<title>{escape(chart.x_label)} {at:g}\n{escape(chr(10).join(told))}</title></rect>"
        )
