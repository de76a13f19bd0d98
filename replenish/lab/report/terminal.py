"""A report's tables and sentences on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from replenish.lab.report.document import Finding, Section, Table


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
    for column in table.columns:
        head = Text(f"{column.group}: {column.title}" if column.group else column.title)
        if column.note:
            head.append(f"\n{column.note}", "dim")
        shown.add_column(head, justify="right" if column.numeric else "left")
    for row in table.rows:
        cells = []
        for cell in row.cells:
            text = Text(cell.text, "dim" if cell.muted else "")
            for note in cell.notes:
                text.append(f"\n{note}", "dim")
            cells.append(text)
        shown.add_row(*cells)
    console.print(shown)
    console.print()


def print_findings(findings: tuple[Finding, ...], console: Console) -> None:
    """Print the sentences, each with what the paper says of the same."""
    for finding in findings:
        said = f"{finding.sentence} {finding.paper_sentence}".strip()
        console.print(Text.assemble(("* ", "bold"), said), highlight=False)
