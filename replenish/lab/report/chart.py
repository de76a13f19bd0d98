"""Draws figures as SVG: no text from users, colours from the page's style, so that light and dark both fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from replenish.lab.axis import Axis, round_step
from replenish.lab.report.document import Figure, Finding, Line, Series

WIDTH, HEIGHT = 560, 330
LEFT, RIGHT, TOP, BOTTOM = 54, 16, 14, 48
#: How many colours and marks the page's style has.
STYLES = 6
_MARKS_PER_LINE = 6
#: The part of a run whose fall may rise above the panel: else its end, which matters, would be flat.
_SKIPPED = 0.1
_FOREST_WIDTH, _FOREST_HEIGHT = 340, 46


def chart(figure: Figure, quantity: str) -> str:
    """Return the SVG of one panel.

    Args:
        figure: The figure.
        quantity: `train_loss` or `test_error`.
    """
    low, high = _extent(figure, quantity)
    step = round_step(high - low, 5)
    bottom, top = math.floor(low / step) * step, math.ceil(high / step) * step
    x = Axis(0, figure.last_epoch, LEFT, WIDTH - RIGHT)
    y = Axis(bottom, top, HEIGHT - BOTTOM, TOP)
    clip = f"clip-{figure.name}-{quantity}"
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="chart" aria-hidden="true" focusable="false" '
        f'data-left="{LEFT}" data-right="{WIDTH - RIGHT}" data-top="{TOP}" data-bottom="{HEIGHT - BOTTOM}" '
        f'data-epochs="{figure.last_epoch}" data-low="{_plain(bottom)}" data-high="{_plain(top)}">',
        f'<clipPath id="{clip}"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT}" '
        f'height="{HEIGHT - BOTTOM - TOP + 6}"/></clipPath>',
        *_grid(x, y, bottom, top, step, figure.last_epoch),
        *_drops(figure, x),
        f'<g clip-path="url(#{clip})">',
    ]
    for index, line in enumerate(figure.lines):
        parts += _band(index, line, getattr(line, quantity), x, y)
    for index, line in enumerate(figure.lines):
        parts += _strays(index, line, quantity, x, y)
        parts += _median(index, line, getattr(line, quantity), len(figure.lines), x, y)
    parts += ["</g>", f'<line class="cursor" y1="{TOP}" y2="{HEIGHT - BOTTOM}" hidden=""/>', "</svg>"]
    return "".join(parts)


def mark(index: int, x: float, y: float) -> str:
    """Return the mark of a line, so that lines can be told apart without their colours."""
    shapes = (
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4"/>',
        f'<rect x="{_n(x - 3.6)}" y="{_n(y - 3.6)}" width="7.2" height="7.2"/>',
        f'<path d="M{_n(x)} {_n(y - 4.8)}l4.8 8.4h-9.6z"/>',
        f'<path d="M{_n(x)} {_n(y - 5.2)}l5.2 5.2l-5.2 5.2l-5.2 -5.2z"/>',
        f'<path d="M{_n(x)} {_n(y + 4.8)}l4.8 -8.4h-9.6z"/>',
        f'<rect x="{_n(x - 5)}" y="{_n(y - 2.2)}" width="10" height="4.4"/>',
    )
    return f'<g class="mark c{index % STYLES}">{shapes[index % STYLES]}</g>'


def forest(finding: Finding, reach: float) -> str:
    """Return a small SVG of a difference: its interval, its mean, zero, and the paper's difference.

    Args:
        finding: What to draw.
        reach: The largest absolute difference that must fit; the same for findings that stand together.
    """
    scale = Axis(-reach, reach, 14, _FOREST_WIDTH - 14)
    parts = [
        f'<svg viewBox="0 0 {_FOREST_WIDTH} {_FOREST_HEIGHT}" class="forest" aria-hidden="true" focusable="false">',
        f'<line class="axis" x1="6" x2="{_FOREST_WIDTH - 6}" y1="20" y2="20"/>',
        f'<line class="zero" x1="{_n(scale.at(0))}" x2="{_n(scale.at(0))}" y1="6" y2="34"/>',
        f'<text x="{_n(scale.at(0))}" y="44" text-anchor="middle">0</text>',
        '<text x="6" y="44">first better</text>',
        f'<text x="{_FOREST_WIDTH - 6}" y="44" text-anchor="end">second better</text>',
    ]
    if finding.paper is not None:
        at = scale.at(finding.paper)
        parts.append(f'<path class="paper" d="M{_n(at)} 12l7 8l-7 8l-7 -8z"/>')
    if finding.low is not None and finding.high is not None:
        parts.append(
            f'<line class="interval" x1="{_n(scale.at(finding.low))}" x2="{_n(scale.at(finding.high))}" '
            'y1="20" y2="20"/>'
        )
    if finding.mean is not None:
        parts.append(f'<circle class="mean" cx="{_n(scale.at(finding.mean))}" cy="20" r="5"/>')
    return "".join(parts) + "</svg>"


def forest_reach(findings: Sequence[Finding]) -> float:
    """Return a reach for `forest` that fits all of some findings."""
    values = [
        abs(value)
        for finding in findings
        for value in (finding.paper, finding.mean, finding.low, finding.high)
        if value is not None
    ]
    return max(values, default=0.0) or 1.0


def _extent(figure: Figure, quantity: str) -> tuple[float, float]:
    """Return what the panel must show: the finished lines, but for the steep fall of the first epochs."""
    values = []
    for line in figure.lines:
        series = getattr(line, quantity)
        for epoch, low, high in zip(line.epochs, series.low, series.high, strict=True):
            if low is not None and epoch >= min(figure.last_epoch * _SKIPPED, line.epochs[-1]):
                values += [low, high]
    if not values:
        # A run that diverges can reach any loss: only where nothing else is there it sets the scale.
        strays = [stray for line in figure.lines for stray in line.strays]
        values = [value for stray in strays for value in getattr(stray, quantity) if value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high - low > 1e-9 * max(abs(high), 1.0) else (low - 0.5, high + 0.5)


def _grid(x: Axis, y: Axis, bottom: float, top: float, step: float, epochs: int) -> Iterator[str]:
    for count in range(round((top - bottom) / step) + 1):
        value = bottom + count * step
        at = _n(y.at(value))
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>'
        yield f'<text x="{LEFT - 8}" y="{_n(y.at(value) + 4.5)}" text-anchor="end">{_plain(value)}</text>'
    across = max(round_step(epochs, 5), 1.0)
    for count in range(int(epochs / across) + 1):
        at = _n(x.at(count * across))
        yield f'<line class="tick" x1="{at}" x2="{at}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}"/>'
        yield f'<text x="{at}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{_plain(count * across)}</text>'
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>'
    middle = _n((LEFT + WIDTH - RIGHT) / 2)
    yield f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">effective epoch</text>'


def _drops(figure: Figure, x: Axis) -> Iterator[str]:
    """Yield the learning-rate drops: in the colour of a line if it is the only one to drop there."""
    lines_at: dict[float, list[int]] = {}
    for index, line in enumerate(figure.lines):
        for drop in line.drops:
            lines_at.setdefault(drop, []).append(index)
    for drop, lines in sorted(lines_at.items()):
        colour = f"c{lines[0] % STYLES}" if len(lines) == 1 and len(figure.lines) > 1 else "shared"
        at = _n(x.at(drop))
        ends = f'x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
        yield f'<line class="drop {colour}" data-epoch="{_plain(drop)}" {ends}/>'


def _band(index: int, line: Line, series: Series, x: Axis, y: Axis) -> Iterator[str]:
    if len(line.runs) < 2:
        return
    kept = [
        (x.at(epoch), y.at(low), y.at(high))
        for epoch, low, high in zip(line.epochs, series.low, series.high, strict=True)
        if low is not None and high is not None
    ]
    if kept:
        upper = [(at, high) for at, _, high in kept]
        lower = [(at, low) for at, low, _ in reversed(kept)]
        yield f'<path class="band c{index % STYLES}" d="{_path([*upper, *lower])}Z"/>'


def _median(index: int, line: Line, series: Series, lines: int, x: Axis, y: Axis) -> Iterator[str]:
    points = [
        (x.at(epoch), y.at(value)) for epoch, value in zip(line.epochs, series.median, strict=True) if value is not None
    ]
    if not points:
        return
    yield f'<path class="line c{index % STYLES}" d="{_path(points)}"/>'
    # Marks of different lines are set at different places, so that they do not hide each other.
    gap = max(len(points) // _MARKS_PER_LINE, 1)
    start = min(index * gap // lines, len(points) - 1)
    for at, height in [*points[start:-1:gap], points[-1]]:
        yield mark(index, at, height)


def _strays(index: int, line: Line, quantity: str, x: Axis, y: Axis) -> Iterator[str]:
    for stray in line.strays:
        values = zip(stray.epochs, getattr(stray, quantity), strict=True)
        if points := [(x.at(epoch), y.at(value)) for epoch, value in values if value is not None]:
            colour, (at, height) = f"c{index % STYLES}", points[-1]
            yield f'<path class="stray {colour}" d="{_path(points)}"/>'
            yield f'<circle class="stray-end {colour}" cx="{_n(at)}" cy="{_n(height)}" r="3"/>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_n(at)} {_n(height)}" for at, height in points)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _plain(value: float) -> str:
    return f"{value:.10g}"
