"""Figures and forest plots as SVG files for Markdown and the PDF. The style is inside, for light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

from replenish.lab.show.chart import Axis, Figure, round_reach, tick_label, ticks
from replenish.lab.show.page import palette_css
from replenish.lab.show.svg import HEIGHT, WIDTH, chart_svg, swatch
from replenish.lab.statistics import Interval
from replenish.palette import look_of

_FONT = "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;fill:var(--soft)}"
_INK = "text.ink{fill:var(--ink)}.ink.strong{font-weight:640}.sheet{fill:var(--sheet);stroke:var(--hair)}"
_EDGE, _LINE, _TITLE = 16, 22, 26
#: The approximate width of a character in the legend.
_CHARACTER = 7.2
#: Heights in a forest plot: of a row, of the title, and of the part below the rows.
_ROW, _ABOVE, _FOOT = 30, 44, 54
#: Left edges of a forest plot's columns (labels, axis, numbers, verdicts), and its width.
_LABELS, _AXIS, _NUMBERS, _VERDICTS, _FOREST_WIDTH = 16, 372, 700, 872, 1050


def figure_picture(figure: Figure) -> str:
    """Return a figure as an SVG file: its charts in a row, with labelled axes and a legend above them."""
    width = len(figure.charts) * (WIDTH + _EDGE) + _EDGE
    legend, rows = _legend(figure, width)
    top = _EDGE + _TITLE + rows * _LINE
    parts = [heading(figure.title), legend]
    for index, chart in enumerate(figure.charts):
        left = _EDGE + index * (WIDTH + _EDGE)
        parts.append(f'<text x="{left + 8}" y="{top + 12}" font-size="13">{escape(chart.y_label)}</text>')
        placed = f'<svg x="{left}" y="{top + 18}" width="{WIDTH}" height="{HEIGHT}" '
        drawn = chart_svg(chart, figure.name).replace("<svg ", placed, 1)
        parts.append(drawn.replace('hidden=""', 'visibility="hidden"'))  # the cursor that a page's script moves
    return document(width, top + HEIGHT + 18 + _EDGE // 2, parts, figure.title)


def document(width: float, height: float, parts: Iterable[str], label: str) -> str:
    """Return an SVG file of these parts on a background, with the palette and the style of charts."""
    charts = resources.files("replenish.lab.show").joinpath("templates/chart.css").read_text()
    style = palette_css() + _FONT + charts + _INK
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" '
        f'aria-label="{escape(label)}"><style>{" ".join(style.split())}</style>'
        f'<rect class="sheet" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="10"/>'
        f"{''.join(parts)}</svg>\n"
    )


def heading(text: str) -> str:
    """Return a picture's title."""
    return f'<text class="ink strong" x="{_EDGE}" y="{_EDGE + 14}" font-size="16">{escape(text)}</text>'


def _legend(figure: Figure, width: float) -> tuple[str, int]:
    """Return the legend, and how many rows it takes."""
    parts, across, row = [], float(_EDGE), 0
    for series in figure.legend:
        text = f"{series.name} ({series.note})" if series.note else series.name
        wide = 44 + _CHARACTER * len(text) + 18
        if across > _EDGE and across + wide > width - _EDGE:
            across, row = float(_EDGE), row + 1
        base = _EDGE + _TITLE + row * _LINE
        parts.append(swatch(figure, series).replace("<svg ", f'<svg x="{across:g}" y="{base}" ', 1))
        parts.append(f'<text class="ink" x="{across + 42:g}" y="{base + 11.5:g}" font-size="13">{escape(text)}</text>')
        across += wide
    return "".join(parts), row + 1


@dataclass(frozen=True)
class ForestRow:
    """A row: a mean with its interval and its verdict. Without a mean, only the verdict is shown.

    `order` gives the row its colour. `strong` marks the primary comparison, `provisional` a comparison whose runs have
    not all ended. A `heading` has only a label.
    """

    label: str
    mean: float | None = None
    interval: Interval | None = None
    numbers: str = ""
    verdict: str = ""
    order: str = "srs"
    strong: bool = False
    heading: bool = False
    provisional: bool = False


def forest_picture(title: str, rows: Sequence[ForestRow], margin: float, x_label: str, note: str = "") -> str:
    """Return a forest plot as an SVG file. A band shows the margin within which a difference does not matter."""
    bottom = _ABOVE + _ROW * len(rows)
    ends = [end for row in rows if row.interval is not None for end in (row.interval.low, row.interval.high)]
    reach = round_reach([2 * margin, *ends, *(row.mean for row in rows if row.mean is not None)])
    x = Axis(-reach, reach, _AXIS, _NUMBERS - 24)
    parts = [
        heading(title),
        f'<rect x="{x.at(-margin):.1f}" y="{_ABOVE}" width="{x.at(margin) - x.at(-margin):.1f}" '
        f'height="{bottom - _ABOVE}" fill="var(--faint)"/>',
    ]
    for value in ticks(x.low, x.high, 6):
        at, kind = f"{x.at(value):.1f}", "zero" if value == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{_ABOVE}" y2="{bottom}"/>')
        text = tick_label(value).replace("-", "\u2212")
        parts.append(f'<text x="{at}" y="{bottom + 18}" font-size="13" text-anchor="middle">{text}</text>')
    for index, row in enumerate(rows):
        parts += _row(row, x, _ABOVE + index * _ROW + _ROW / 2)
    middle = (x.start + x.stop) / 2
    parts.append(f'<text x="{middle:g}" y="{bottom + 38}" font-size="13" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text x="{_EDGE}" y="{bottom + 38}" font-size="12">{escape(note)}</text>')
    return document(_FOREST_WIDTH, bottom + _FOOT, [f'<g class="chart forest">{"".join(parts)}</g>'], title)


def _row(row: ForestRow, x: Axis, middle: float) -> Iterator[str]:
    base = f"{middle + 4.5:g}"
    strong = "ink strong" if row.strong or row.heading else "ink"
    texts = [(strong, _LABELS + (0 if row.heading else 12), row.label)]
    texts.append((strong if row.strong else "", _VERDICTS, row.verdict))
    for classes, left, text in texts:
        yield f'<text class="{classes}" x="{left}" y="{base}" font-size="13">{escape(text)}</text>'
    if row.mean is None:
        return
    faded = ' opacity="0.45"' if row.provisional else ""
    yield f'<text class="ink" x="{_NUMBERS}" y="{base}" font-size="13"{faded}>{escape(row.numbers)}</text>'
    yield f'<g class="h{look_of(row.order).hue}"{faded}>'
    if row.interval is not None:
        ends = f'x1="{x.at(row.interval.low):.1f}" x2="{x.at(row.interval.high):.1f}"'
        yield f'<line class="interval" {ends} y1="{middle:g}" y2="{middle:g}"/>'
    yield f'<circle class="mean" cx="{x.at(row.mean):.1f}" cy="{middle:g}" r="{6 if row.strong else 4.5}"/></g>'
