"""Pages: sections of sentences, findings, tables and figures, as one HTML file that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replenish.lab.show.chart import Chart, Figure, values_table
from replenish.lab.show.finding import Finding, common_reach, finding_svg
from replenish.lab.show.svg import chart_svg, look_classes, swatch
from replenish.lab.show.table import Table
from replenish.palette import COLOURS, DASHES, HUES, look_of

if TYPE_CHECKING:
    from jinja2 import Environment

#: Tables with at most so many rows become cards on a phone; longer ones scroll.
_MOST_CARDS = 16


@dataclass(frozen=True)
class Fact:
    """One of the few numbers that say most, with what it is and what to set beside it."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Notice:
    """Something that a reader must not miss, with the runs that it is about."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own. `code` is a command to copy; a folded section opens with a click."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    blocks: tuple[Table | Figure, ...] = ()
    code: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Page:
    """A whole page; `card` is the name of a picture to show to others, beside it."""

    title: str
    lead: str
    kicker: str
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    notices: tuple[Notice, ...] = ()
    card: str = ""


def page_html(page: Page, other: str = "") -> str:
    """Return the page, all escaped, with a link to the file that has it as Markdown, if there is one."""
    return environment().get_template("page.html").render(page=page, other=other)


def environment(package: str = "replenish.lab.show", orders: Sequence[str] = ()) -> Environment:
    """Return the templates of a package and of the kit, which they can extend; its style names the orders' colours."""
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
        # Styles and scripts as they are: braces in them mean nothing to a template.
        raw=lambda name: Markup(made.loader.get_source(made, name)[0]) if made.loader else "",
        # The pictures escape their text themselves.
        chart_svg=lambda chart, figure: Markup(chart_svg(chart, figure)),
        strip=lambda finding, reach: Markup(finding_svg(finding, reach)),
        swatch=lambda figure, series: Markup(swatch(figure, series)),
        palette=Markup(palette_css(orders)),
        cards=lambda table: len(table.rows) <= _MOST_CARDS,
    )
    made.filters.update(unbroken=_unbroken, data=figure_data, values=values_table, reach=common_reach)
    made.tests["figure"] = lambda block: isinstance(block, Figure)
    return made


def palette_css(orders: Sequence[str] = ()) -> str:
    """Return the colours and dashes as style rules, light and dark, and of some orders by their names too."""
    named = {f"h{index}": hue for index, hue in enumerate(HUES)} | COLOURS
    grounds = ("".join(f"--{name}:{colours[side]};" for name, colours in named.items()) for side in range(2))
    light, dark = (f":root{{{each}}}" for each in grounds)
    rules = [f".h{index}{{--h:var(--h{index});color:var(--h)}}" for index in range(len(HUES))]
    rules += [f".d{index} .line{{stroke-dasharray:{dash}}}" for index, dash in enumerate(DASHES) if dash]
    # Shades of one colour, beside the dashes: lines of one order stay of one colour, and can be followed.
    rules.append(".d1,.d3{color:color-mix(in srgb,var(--h) 55%,var(--ink))}")
    rules.append(".d2{color:color-mix(in srgb,var(--h) 65%,var(--soft))}")
    rules += [f".{order}{{--colour:var(--h{look_of(order).hue})}}" for order in orders]
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}{''.join(rules)}"


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return a figure's values as plain data, for the page's script and for whoever wants them."""
    return {"name": figure.name, "charts": [_chart_data(chart) for chart in figure.charts]}


def _chart_data(chart: Chart) -> dict[str, Any]:
    series = [
        {"name": each.name, "told": each.told, "look": look_classes(*chart.looks[each.name])}
        | {"x": list(each.x), "y": list(each.y)}
        | ({"low": list(each.low), "high": list(each.high)} if each.low else {})
        for each in chart.series
    ]
    ends = {"x_ends": list(chart.x_ends), "part": chart.part, "log": chart.log, "x_label": chart.x_label}
    return {"name": chart.name, **ends, "x_names": list(chart.x_names), "decimals": chart.decimals, "series": series}


def _unbroken(sentence: str) -> str:
    """Return a sentence in which "95 %" and "n = 5" stay on one line."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\bn) (?==)|(?<==) (?=\d)", "\u00a0", sentence)
