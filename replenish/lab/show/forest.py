"""A forest plot: effects with their intervals, one above the other on one axis, beside what is said of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from replenish.lab.show.axis import Axis, round_reach, tick_label, ticks
from replenish.lab.show.picture import document, heading
from replenish.lab.statistics import Interval
from replenish.palette import look_of

_EDGE, _ROW, _TITLE, _FOOT = 16, 30, 44, 54
#: Where the columns begin: the labels, the axis, the numbers, the verdicts; and the end.
_LABELS, _AXIS, _NUMBERS, _VERDICTS, _WIDTH = 16, 372, 700, 872, 1050


@dataclass(frozen=True)
class ForestRow:
    """A row: a mean with its interval and what is said of it; without a mean, the verdict alone is shown.

    It has the colour of an order. The one that counts most is strong; one that rests on a part of the data, so that
    nothing is said of it yet, is provisional; a heading is no effect at all.
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
    """Return the rows as an SVG file; a band shows the margin within which a difference does not matter."""
    bottom = _TITLE + _ROW * len(rows)
    ends = [end for row in rows if row.interval is not None for end in (row.interval.low, row.interval.high)]
    reach = round_reach([2 * margin, *ends, *(row.mean for row in rows if row.mean is not None)])
    x = Axis(-reach, reach, _AXIS, _NUMBERS - 24)
    parts = [
        heading(title),
        f'<rect x="{x.at(-margin):.1f}" y="{_TITLE}" width="{x.at(margin) - x.at(-margin):.1f}" '
        f'height="{bottom - _TITLE}" fill="var(--faint)"/>',
    ]
    for value in ticks(x.low, x.high, 6):
        at, kind = f"{x.at(value):.1f}", "zero" if value == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{_TITLE}" y2="{bottom}"/>')
        text = tick_label(value).replace("-", "\u2212")
        parts.append(f'<text x="{at}" y="{bottom + 18}" font-size="13" text-anchor="middle">{text}</text>')
    for index, row in enumerate(rows):
        parts += _row(row, x, _TITLE + index * _ROW + _ROW / 2)
    middle = (x.start + x.stop) / 2
    parts.append(f'<text x="{middle:g}" y="{bottom + 38}" font-size="13" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text x="{_EDGE}" y="{bottom + 38}" font-size="12">{escape(note)}</text>')
    return document(_WIDTH, bottom + _FOOT, [f'<g class="chart forest">{"".join(parts)}</g>'], title)


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
