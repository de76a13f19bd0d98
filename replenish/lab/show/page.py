"""Pages: sections of sentences, findings, tables and figures, as one HTML file that needs no other file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replenish.lab.show.chart import Chart, Figure, Finding, common_reach
from replenish.lab.show.svg import chart_svg, finding_svg, look_classes, swatch
from replenish.lab.show.table import Cell, Table
from replenish.palette import COLOURS, DASHES, HUES, look_of

if TYPE_CHECKING:
    from jinja2 import Environment

#: On a phone, tables with at most this many rows become cards if they have more than numbers; others scroll.
_MOST_CARDS = 16
#: A cell with more characters is a sentence, and takes the whole width of its card.
_LONG = 40
#: Tables with at most this many columns and rows, and no sentences, are half as wide as the page.
_MOST_HALF = 4, 12


@dataclass(frozen=True)
class Fact:
    """One of the few numbers at the top of a page: its value and its label."""

    value: str
    label: str


@dataclass(frozen=True)
class Notice:
    """A box that a reader must not miss."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading. `code` is a command to copy. A click opens a folded section."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    blocks: tuple[Table | Figure, ...] = ()
    code: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole page; `card` is the file name of its picture to share."""

    title: str
    lead: str
    kicker: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    notices: tuple[Notice, ...] = ()
    card: str = ""


def page_html(page: Page, other: str = "") -> str:
    """Return the page as escaped HTML; `other` is the file name of the same page as Markdown."""
    return environment().get_template("page.html").render(page=page, other=other)


def environment(package: str = "replenish.lab.show", orders: Sequence[str] = ()) -> Environment:
    """Return the templates of a package, which can extend the ones here, with a CSS class for each given order."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in dict.fromkeys((package, "replenish.lab.show"))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.globals.update(
        # Styles and scripts are inserted as they are: their braces are not template syntax.
        raw=lambda name: Markup(made.loader.get_source(made, name)[0]) if made.loader else "",
        # These functions escape their text.
        chart_svg=lambda chart, figure: Markup(chart_svg(chart, figure)),
        forest=lambda finding, reach: Markup(finding_svg(finding, reach)),
        swatch=lambda figure, series: Markup(swatch(figure, series)),
        palette=Markup(palette_css(orders)),
        cards=_as_cards,
        half=_is_half,
        LONG=_LONG,
    )
    made.filters.update(unbroken=unbroken, data=figure_data, reach=common_reach)
    made.tests["figure"] = lambda block: isinstance(block, Figure)
    return made


def _cells(table: Table) -> list[Cell]:
    return [cell for row in table.rows for cell in row.cells]


def _as_cards(table: Table) -> bool:
    return len(table.rows) <= _MOST_CARDS and any(cell.notes or len(cell.text) > _LONG for cell in _cells(table))


def _is_half(block: Table | Figure) -> bool:
    if isinstance(block, Figure):
        return len(block.charts) == 1
    small = len(block.columns) <= _MOST_HALF[0] and len(block.rows) <= _MOST_HALF[1]
    return small and not any(len(cell.text) > _LONG for cell in _cells(block))


def palette_css(orders: Sequence[str] = ()) -> str:
    """Return the colours and dashes as style rules for light and dark, with a class for each given order."""
    named = {f"h{index}": hue for index, hue in enumerate(HUES)} | COLOURS
    grounds = ("".join(f"--{name}:{colours[side]};" for name, colours in named.items()) for side in range(2))
    light, dark = (f":root{{{each}}}" for each in grounds)
    rules = [f".h{index}{{--h:var(--h{index});color:var(--h)}}" for index in range(len(HUES))]
    rules += [f".d{index} .line{{stroke-dasharray:{dash}}}" for index, dash in enumerate(DASHES) if dash]
    # Lines of one order differ in shade, in addition to their dashes.
    rules.append(".d1,.d3{color:color-mix(in srgb,var(--h) 55%,var(--ink))}")
    rules.append(".d2{color:color-mix(in srgb,var(--h) 65%,var(--soft))}")
    rules += [f".{order}{{--colour:var(--h{look_of(order).hue})}}" for order in orders]
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}{''.join(rules)}"


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return a figure's values as plain data, for the page's script."""
    return {"name": figure.name, "charts": [_chart_data(chart) for chart in figure.charts]}


def _chart_data(chart: Chart) -> dict[str, Any]:
    series = [
        {"name": each.name, "readable": each.readable, "look": look_classes(*chart.looks[each.name])}
        | {"x": list(each.x), "y": list(each.y)}
        | ({"low": list(each.low), "high": list(each.high)} if each.low else {})
        for each in chart.series
    ]
    ends = {"x_ends": list(chart.x_ends), "step_width": chart.step_width, "log": chart.log, "x_label": chart.x_label}
    return {"name": chart.name, **ends, "x_names": list(chart.x_names), "decimals": chart.decimals, "series": series}


def unbroken(sentence: str) -> str:
    """Return a sentence with non-breaking spaces in "95 %" and "n = 5"."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\bn) (?==)|(?<==) (?=\d)", "\u00a0", sentence)
