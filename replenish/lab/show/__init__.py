"""Tables, charts and pages as data, and how they become terminal output, Markdown and HTML."""

from replenish.lab.show.chart import Chart, Figure, Finding, Reference, Series, pairs_figure
from replenish.lab.show.page import Fact, Notice, Page, Section
from replenish.lab.show.table import NOTHING, Cell, Column, Row, Table, print_table

__all__ = [
    "NOTHING",
    "Cell",
    "Chart",
    "Column",
    "Fact",
    "Figure",
    "Finding",
    "Notice",
    "Page",
    "Reference",
    "Row",
    "Section",
    "Series",
    "Table",
    "pairs_figure",
    "print_table",
]
