"""Tables and sentences on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from replenish.lab.show.finding import Finding
from replenish.lab.show.table import Column, Table


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption; what stands beneath a value in a page stands beneath it here.

    Where the terminal has no room for all columns, the brief ones are shown, and a line names the others.
    """
    beneath = [table.caption]
    shown = _rich_table(table, table.columns)
    brief = [column for column in table.columns if column.brief]
    if len(brief) < len(table.columns) and _natural_width(shown, console) > console.width:
        shown = _rich_table(table, brief)
        others = ", ".join(column.heading for column in table.columns if not column.brief)
        beneath.append(f"A wider terminal, or a pipe, also shows: {others}.")
    # Beside a narrow table, a title or a caption of its own would be broken to its width.
    console.print(Text(table.title, "bold"), highlight=False)
    console.print(shown)
    for sentence in filter(None, beneath):
        console.print(Text(sentence, "table.caption"), highlight=False)


def _rich_table(table: Table, columns: Sequence[Column]) -> RichTable:
    shown = RichTable()
    kept = [index for index, column in enumerate(table.columns) if column in columns]
    for index in kept:
        column = table.columns[index]
        head = Text(column.heading)
        if column.note:
            head.append(f"\n{column.note}", "dim")
        # A name in two pieces could not be copied, so other columns give way first.
        whole = any(row.cells[index].code for row in table.rows)
        shown.add_column(head, justify="right" if column.numeric else "left", no_wrap=whole, overflow="fold")
    for row in table.rows:
        cells = []
        for cell in (row.cells[index] for index in kept):
            text = Text(cell.text, "dim" if cell.muted else "")
            for note in cell.notes:
                text.append(f"\n{note}", "dim")
            cells.append(text)
        shown.add_row(*cells)
    return shown


def _natural_width(shown: RichTable, console: Console) -> int:
    """Return how wide a table is if nothing in it is broken."""
    return Measurement.get(console, console.options.update(width=10_000), shown).maximum


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """Print the sentences, each with what the paper says of the same."""
    for finding in findings:
        console.print(Text.assemble(("* ", "bold"), finding.said), highlight=False)
