"""Figures as SVG files of their own, for Markdown and paper: light and dark, with legend, labels and style inside."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib import resources

from replenish.lab.show.chart import Figure
from replenish.lab.show.page import palette_css
from replenish.lab.show.svg import HEIGHT, WIDTH, chart_svg, swatch

_FONT = "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;fill:var(--soft)}"
_INK = "text.ink{fill:var(--ink)}.ink.strong{font-weight:640}.sheet{fill:var(--sheet);stroke:var(--hair)}"
_EDGE, _LINE, _TITLE = 16, 22, 26
#: About how wide a character of the legend is.
_CHARACTER = 7.2


def figure_picture(figure: Figure) -> str:
    """Return a figure as an SVG file: its charts side by side, with a legend above and the axes named."""
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
    """Return an SVG file with the palette and the style of charts, on a sheet."""
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
    """Return the legend, in as many rows as it takes, and their number."""
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
