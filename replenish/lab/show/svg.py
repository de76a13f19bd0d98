"""Charts and findings as SVG. Colours are the page's CSS variables, for light and dark; text is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from replenish.lab.show.chart import Axis, Chart, Figure, Finding, Reference, Series, log_ticks, tick_label, ticks
from replenish.lab.verdict import Verdict
from replenish.palette import MARKS, Look, look_of

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 54, 544, 14, 272
#: More marks would hide a line.
_MARKS_PER_LINE = 8
#: How many characters of a name fit beneath an axis, with an arrow and "better", in the larger letters of a phone; and
#: how many of two names fit on one line.
_LONGEST_NAME, _LONGEST_BESIDE = 36, 26

Point = tuple[float, float]


def chart_svg(chart: Chart, figure: str) -> str:
    """Return a chart of a figure. The page itself adds the label of the vertical axis, the legend and the caption."""
    low, high, step = chart.y_ends
    x, y = Axis(*chart.x_ends, LEFT, RIGHT, chart.log), Axis(low, high, BOTTOM, TOP)
    clip = f"clip-{figure}-{chart.name}"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="chart" role="img" aria-label="{escape(chart.y_label)}" '
        f'focusable="false" data-left="{LEFT}" data-right="{RIGHT}"><clipPath id="{escape(clip)}">'
        f'<rect x="{LEFT}" y="{TOP - 6}" width="{WIDTH - LEFT}" height="{BOTTOM - TOP + 12}"/></clipPath>',
        *_axes(chart, x, y, step),
        *(_reference(each, x, y) for each in chart.references),
        f'<g clip-path="url(#{escape(clip)})">',
    ]
    drawn = sorted(enumerate(chart.series), key=lambda item: item[1].kind == "law")  # laws lie on top
    for draw in (_band, _values):
        for index, series in drawn:
            if inside := "".join(draw(series, index, chart, x, y)):
                parts.append(f'<g class="{look_classes(*chart.looks[series.name])}">{inside}</g>')
    parts += ["</g>", *_level_labels(chart, y)]
    parts += [f'<line class="cursor" y1="{TOP}" y2="{BOTTOM}" hidden=""/></svg>']
    return "".join(parts)


def swatch(figure: Figure, series: Series) -> str:
    """Return a small picture of a series for the legend."""
    look, dash = (None, 0) if series.kind == "law" else figure.charts[0].looks[series.name]
    line = "" if series.kind == "points" else f'<path class="{_line_classes(series)}" d="M1 7H35"/>'
    dot = mark(look, 18, 7) if series.kind in ("line", "points") and not series.thin else ""
    return (
        f'<svg class="swatch {look_classes(look, dash)}" viewBox="0 0 36 14" width="36" height="14" '
        f'aria-hidden="true" focusable="false">{line}{dot}</svg>'
    )


def look_classes(look: Look | None, dash: int = 0) -> str:
    """Return the CSS classes of a look, for its hue and its dashes. A law has the colour of text."""
    return "law" if look is None else f"h{look.hue}" + (f" d{dash}" if dash else "")


def mark(look: Look | None, x: float, y: float) -> str:
    """Return a mark, which tells series apart without colour."""
    return f'<path class="mark" d="{mark_path(look, x, y)}"/>'


def mark_path(look: Look | None, x: float = 0, y: float = 0) -> str:
    """Return the outline of a mark around a point."""
    shapes = {
        "circle": f"M{number(x - 4)} {number(y)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "square": f"M{number(x - 3.6)} {number(y - 3.6)}h7.2v7.2h-7.2z",
        "diamond": f"M{number(x)} {number(y - 5.2)}l5.2 5.2l-5.2 5.2l-5.2 -5.2z",
        "triangle": f"M{number(x)} {number(y - 4.8)}l4.8 8.4h-9.6z",
        "down": f"M{number(x)} {number(y + 4.8)}l4.8 -8.4h-9.6z",
        "bar": f"M{number(x - 5)} {number(y - 2.2)}h10v4.4h-10z",
    }
    return shapes[MARKS[look.mark if look else 0]]


def _axes(chart: Chart, x: Axis, y: Axis, step: float) -> Iterator[str]:
    for count in range(round((y.high - y.low) / step) + 1):
        value = round(y.low + count * step, 10)
        at = y.at(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{number(at)}" y2="{number(at)}"/>'
        yield (
            f'<text class="tick y" data-value="{value:g}" x="{LEFT - 8}" y="{number(at + 4.5)}" text-anchor="end">'
            f"{tick_label(value)}</text>"
        )
    named = [(float(index), name) for index, name in enumerate(chart.x_names)]
    # Names that would overlap in a phone's larger letters alternate between two lines; the second one replaces the
    # axis label.
    crowded = any(13 * len(name) > (RIGHT - LEFT) / len(named) for _, name in named)
    marked = log_ticks(x.low, x.high) if chart.log else ticks(x.low, x.high, 6, whole=chart.whole)
    for value, label in named or [(tick, tick_label(tick)) for tick in marked]:
        across, base = number(x.at(value)), BOTTOM + (40 if crowded and value % 2 else 20)
        yield f'<line class="axis" x1="{across}" x2="{across}" y1="{BOTTOM}" y2="{BOTTOM + 5}"/>'
        yield (
            f'<text class="tick x" data-value="{value:g}" x="{across}" y="{base}" text-anchor="middle">'
            f"{escape(label)}</text>"
        )
    yield f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>'
    if not crowded:
        middle = (LEFT + RIGHT) // 2
        yield f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(chart.x_label)}</text>'


def _reference(reference: Reference, x: Axis, y: Axis) -> str:
    if reference.upright:
        at = number(x.at(reference.value))
        ends = f'x1="{at}" x2="{at}" y1="{TOP}" y2="{BOTTOM}"'
        return f'<line class="upright" data-value="{reference.value:g}" {ends}/>'
    at = number(y.at(reference.value))
    return f'<line class="level" x1="{LEFT}" x2="{RIGHT}" y1="{at}" y2="{at}"/>'


def _level_labels(chart: Chart, y: Axis) -> Iterator[str]:
    """Yield the labels of horizontal references, drawn last so that no line covers them."""
    for reference in chart.references:
        if not reference.upright:
            base = y.at(reference.value) + (-7 if _label_above(chart, reference.value) else 16)
            place = f'x="{RIGHT}" y="{number(base)}" text-anchor="end"'
            yield f'<text class="level" {place}>{escape(reference.label)}</text>'


def _label_above(chart: Chart, height: float) -> bool:
    """Return whether to put a reference's label, at the right end, above it: it then covers fewer lines than below."""
    (left, right), (_, top, _) = chart.x_ends, chart.y_ends
    near = [
        value - height
        for series in chart.series
        for at, value in series.known()
        if at > (left + right) / 2 and abs(value - height) < top / 12
    ]
    below = sum(off <= 0 for off in near)
    return height < top / 10 or below > len(near) - below


def _band(series: Series, index: int, chart: Chart, x: Axis, y: Axis) -> Iterator[str]:
    kept = list(series.band())
    if series.whiskers:
        for at, *ends in kept:
            low, high = (number(y.at(end)) for end in ends)
            middle, left = number(x.at(at)), number(x.at(at) - 5)
            yield f'<path class="whisker" d="M{middle} {low}V{high}m-5 0h10M{left} {low}h10"/>'
    elif kept:
        upper = [(x.at(at), y.at(high)) for at, _, high in kept]
        lower = [(x.at(at), y.at(low)) for at, low, _ in reversed(kept)]
        yield f'<path class="band" d="{_path([*upper, *lower])}Z"/>'


def _values(series: Series, index: int, chart: Chart, x: Axis, y: Axis) -> Iterator[str]:
    known, look = list(series.known()), chart.looks[series.name][0]
    # A closed form passes smoothly through the middles of the steps of others.
    shift = chart.step_width / 2 if series.kind in ("law", "points") else 0.0
    points = [(x.at(at + shift), y.at(value)) for at, value in known]
    if not points:
        return
    if series.kind == "steps":
        ends = [x.at(at + chart.step_width) for at, _ in known]
        drawn = "L".join(f"{number(at)} {number(up)}H{number(end)}" for (at, up), end in zip(points, ends, strict=True))
        yield f'<path class="{_line_classes(series)}" d="M{drawn}"/>'
    elif series.kind != "points":
        yield f'<path class="{_line_classes(series)}" d="{_path(points)}"/>'
    if series.kind == "points":
        yield from (mark(look, *point) for point in points)
    elif series.kind == "line" and not series.thin:
        # Marks of different lines are set apart, so that they do not hide each other.
        gap = max(len(points) // _MARKS_PER_LINE, 1)
        start = min(index * gap // len(chart.series), len(points) - 1)
        yield from (mark(look, *point) for point in [*points[start:-1:gap], points[-1]])


def _line_classes(series: Series) -> str:
    kind = series.kind if series.kind in ("law", "join") else "line"
    return f"{kind} thin" if series.thin else kind


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{number(at)} {number(height)}" for at, height in points)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


# ---- Findings ----


def finding_svg(finding: Finding, reach: float) -> str:
    """Return a finding on an axis from -reach to reach: its interval, its mean, and the paper's difference."""
    verdict, width, bottom, middle = finding.verdict, 400, 34, 17
    labels = {value: tick_label(value).replace("-", "\u2212") for value in ticks(-reach, reach, 4)}
    edge = max(16, 4.5 * max(map(len, labels.values())))  # room for half a label at the end of the axis
    x = Axis(-reach, reach, edge, width - edge)
    read = escape(
        f"{verdict.first} minus {verdict.second}: {verdict.numbers}"
        + ("" if finding.paper is None else f"; reference {verdict.number(finding.paper)}")
    )
    parts = [f'<svg viewBox="0 0 {width} {bottom + 58}" class="chart forest" role="img" aria-label="{read}">']
    if margin := verdict.rule.margin:
        ends = [x.at(min(max(each, -reach), reach)) for each in (-margin, margin)]
        wide = f'x="{number(ends[0])}" width="{number(ends[1] - ends[0])}"'
        parts.append(f'<rect class="margin" {wide} y="4" height="{bottom - 4}"/>')
    for value, label in labels.items():
        at = number(x.at(value))
        parts.append(f'<line class="{"grid" if value else "zero"}" x1="{at}" x2="{at}" y1="4" y2="{bottom}"/>')
        parts.append(f'<text class="tick x" x="{at}" y="{bottom + 15}" text-anchor="middle">{label}</text>')
    parts.append(f'<g class="h{look_of(finding.order).hue}"><title>{read}</title>')
    parts.append(f'<rect class="reach" x="0" y="{middle - 12}" width="{width}" height="24"/>')
    if finding.paper is not None:
        parts.append(f'<path class="reference" d="M{number(x.at(finding.paper))} {middle - 8}l7 8l-7 8l-7 -8z"/>')
    if (interval := verdict.interval) is not None:
        between = f'x1="{number(x.at(interval.low))}" x2="{number(x.at(interval.high))}"'
        parts.append(f'<line class="interval" {between} y1="{middle}" y2="{middle}"/>')
    if verdict.difference.mean is not None:
        parts.append(f'<circle class="mean" cx="{number(x.at(verdict.difference.mean))}" cy="{middle}" r="5"/>')
    base = bottom + 34
    left, right = sides(verdict)
    below = base + (17 if len(left) + len(right) > _LONGEST_BESIDE else 0)
    parts.append(f'</g><text x="2" y="{base}">\u2190 {escape(left)} better</text>')
    parts.append(f'<text x="{width - 2}" y="{below}" text-anchor="end">{escape(right)} better \u2192</text>')
    return "".join(parts) + "</svg>"


def sides(verdict: Verdict) -> tuple[str, str]:
    """Return which is better left of zero and which is better right of it, in names that fit beneath an axis."""
    first, second = (
        name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        for name in (verdict.first, verdict.second)
    )
    return (second, first) if verdict.rule.higher_is_better else (first, second)
