"""The kit that shows things: tables, charts and pages as data, and how a terminal, Markdown, HTML and PNG have them."""

from replenish.lab.show.chart import Chart, Figure, Reference, Series, pairs_figure
from replenish.lab.show.finding import Finding
from replenish.lab.show.page import Fact, Notice, Page, Section
from replenish.lab.show.table import NOTHING, Cell, Column, Origin, Row, Table

__all__ = [
    "NOTHING",
    "Cell",
    "Chart",
    "Column",
    "Fact",
    "Figure",
    "Finding",
    "Notice",
    "Origin",
    "Page",
    "Reference",
    "Row",
    "Section",
    "Series",
    "Table",
    "pairs_figure",
]
