"""A report's tables and sentences on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from replenish.lab.report.document import Finding, Section, Table
from replenish.lab.report.grouping import Group
from replenish.lab.report.short_table3 import CAPTION, HEADINGS, short_table3

#: Columns that the page has and a terminal has no room for.
LEFT_OUT = ("Best epoch", "Median", "Ours − paper")  # noqa: RUF001


def print_section(section: Section, console: Console) -> None:
    """Print what a section found: its tables, then what they allow to be said."""
    for block in section.blocks:
        if isinstance(block, Table):
            print_table(block, console)
    print_findings(section.findings, console)


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption; what stands beneath a value in the page stands beneath it here."""
    shown = RichTable(
        title=Text(table.title, "bold"), caption=Text(table.caption), title_justify="left", caption_justify="left"
    )
    kept = [place for place, column in enumerate(table.columns) if not column.title.startswith(LEFT_OUT)]
    for column in (table.columns[place] for place in kept):
        head = Text(f"{column.group}: {column.title}" if column.group else column.title)
        if column.note:
            head.append(f"\n{column.note}", "dim")
        shown.add_column(head, justify="right" if column.numeric else "left")
    for row in table.rows:
        cells = []
        for cell in (row.cells[place] for place in kept):
            text = Text(cell.text, "dim" if cell.muted else "")
            for note in cell.notes:
                text.append(f"\n{note}", "dim")
            cells.append(text)
        shown.add_row(*cells)
    console.print(shown)
    console.print()


def print_short_table3(groups: Mapping[str, Group], console: Console) -> None:
    """Print table 3 in few columns, the paper's beside ours."""
    shown = RichTable(title=Text("Table 3 in miniature: test error, %", "bold"), title_justify="left")
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading in ("sampling", "decays") else "right")
    for row in short_table3(groups):
        shown.add_row(*row, style="bold" if row[0] == "SRS" else "")
    console.print(shown)
    console.print(f"Of 200 epochs in the paper, scaled to ours; {CAPTION}.", style="dim", highlight=False)


def print_findings(findings: tuple[Finding, ...], console: Console) -> None:
    """Print the sentences, each with what the paper says of the same."""
    for finding in findings:
        said = f"{finding.sentence} {finding.paper_sentence}".strip()
        console.print(Text.assemble(("* ", "bold"), said), highlight=False)
