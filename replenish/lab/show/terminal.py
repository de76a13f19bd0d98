"""Tables and sentences on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from replenish.lab.show.finding import Finding
from replenish.lab.show.page import Section
from replenish.lab.show.table import Table


def print_section(section: Section, console: Console) -> None:
    """Print what a section found: its tables, then what they allow to be said."""
    for block in section.blocks:
        if isinstance(block, Table):
            print_table(block, console)
            console.print()
    print_findings(section.findings, console)


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption; what stands beneath a value in a page stands beneath it here."""
    shown = RichTable(title=Text(table.title, "bold"), title_justify="left", caption_justify="left")
    shown.caption = Text(table.caption) if table.caption else None
    kept = [index for index, column in enumerate(table.columns) if column.brief]
    for column in (table.columns[index] for index in kept):
        head = Text(f"{column.group}: {column.title}" if column.group else column.title)
        if column.note:
            head.append(f"\n{column.note}", "dim")
        shown.add_column(head, justify="right" if column.numeric else "left")
    for row in table.rows:
        cells = []
        for cell in (row.cells[index] for index in kept):
            text = Text(cell.text, "dim" if cell.muted else "")
            for note in cell.notes:
                text.append(f"\n{note}", "dim")
            cells.append(text)
        shown.add_row(*cells)
    console.print(shown)


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """Print the sentences, each with what the paper says of the same."""
    for finding in findings:
        console.print(Text.assemble(("* ", "bold"), finding.said), highlight=False)
