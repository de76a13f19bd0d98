"""A report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import itertools
import re

from replenish.lab.report.chart import STYLES, chart, forest, forest_reach, mark
from replenish.lab.report.document import Document, Figure, Table, figure_data
from replenish.lab.report.figures import QUANTITIES, values_table
from replenish.lab.statistics import signed

_STATES = {"difference": "a difference", "open": "sign open", "unknown": "too little to say"}


def html(document: Document, markdown_name: str) -> str:
    """Return the page; every string of the document is escaped.

    Args:
        document: The report.
        markdown_name: The file name of the same report as Markdown, to link to.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("replenish.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        # The pictures hold numbers alone, no text from users.
        chart=lambda figure, quantity: Markup(chart(figure, quantity)),
        forest=lambda finding, reach: Markup(forest(finding, reach)),
        mark=lambda index: Markup(mark(index, 18, 7)),
        forest_reach=forest_reach,
        quantities=QUANTITIES,
        states=_STATES,
        styles=STYLES,
    )
    environment.filters.update(
        signed=signed, unbroken=_unbroken, figure_data=figure_data, head_groups=_head_groups, values=_all_values
    )
    environment.tests["figure"] = lambda block: isinstance(block, Figure)
    return environment.get_template("report.html").render(document=document, markdown_name=markdown_name)


def _unbroken(sentence: str) -> str:
    """Return a sentence in which "95 %" and "n = 5" stay on one line."""
    return re.sub(r"(?<=\d) (?=%)|(?<=\bn) (?==)|(?<==) (?=\d)", "\u00a0", sentence)


def _all_values(figure: Figure) -> Table:
    return values_table(figure, few=False)


def _head_groups(table: Table) -> list[tuple[str, int]]:
    """Return the heads above the columns with how many each spans; an empty list if there are none."""
    if not any(column.group for column in table.columns):
        return []
    return [(head, len(list(columns))) for head, columns in itertools.groupby(table.columns, lambda c: c.group)]
