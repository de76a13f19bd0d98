"""A report as one Markdown file: the same sentences and tables, and tables of values for the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from replenish.lab.report.document import Cell, Column, Document, Figure, Section, Table
from replenish.lab.report.figures import values_table

#: What Markdown or the HTML inside it would take for markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~!])")


def markdown(document: Document, page_name: str) -> str:
    """Return the report as Markdown; every string of the document is escaped.

    Args:
        document: The report.
        page_name: The file name of the page with the figures, to link to.
    """
    return "\n".join(_lines(document, page_name)) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Example:
        >>> print(escape("a|b <script>"))
        a\|b \<script\>
    """
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return text as code, whatever backticks it holds, fit for a cell of a table too."""
    plain = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if "`" in plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def _lines(document: Document, page_name: str) -> Iterator[str]:
    yield from (f"# {escape(document.title)}", "", escape(document.introduction), "")
    yield f"The figures are in [the page]({page_name.replace(' ', '%20')}) that was written with this file."
    yield ""
    yield " · ".join(f"{escape(label)}: {escape(value)}" for label, value in document.facts)
    for notice in document.notices:
        yield from ("", f"> **{escape(notice.title)}**", ">")
        yield from (f"> - {escape(item)}" for item in notice.items)
    for section in document.sections:
        yield from _section(section, page_name)


def _section(section: Section, page_name: str) -> Iterator[str]:
    yield from ("", f"## {escape(section.title)}")
    for paragraph in section.paragraphs:
        yield from ("", escape(paragraph))
    if section.findings:
        yield ""
    for finding in section.findings:
        yield f"- {escape(' '.join(filter(None, (finding.sentence, finding.paper_sentence))))}"
    for block in section.blocks:
        yield from ("", f"### {escape(block.title)}", "", escape(block.caption), "")
        if isinstance(block, Figure):
            link = page_name.replace(" ", "%20")
            yield from (
                f"Drawn in [the page]({link}#{block.name}); here at a few epochs, median (smallest to largest):",
                "",
            )
            yield from _table(values_table(block, few=True))
        else:
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    yield _row(_head(column) for column in table.columns)
    yield _row("---:" if column.numeric else "---" for column in table.columns)
    for row in table.rows:
        yield _row(_cell(cell) for cell in row.cells)
    for remark in table.remarks:
        yield from ("", escape(remark))
    if table.origins:
        yield from ("", "Made by:", "")
    for origin in table.origins:
        runs = "1 run" if origin.runs == 1 else f"{origin.runs} runs"
        yield f"- {code(origin.command)} at commit {code(origin.commit)}: {runs}"


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(column: Column) -> str:
    head = ": ".join(part for part in (column.group, column.title) if part)
    note = column.note if column.note.startswith("(") else column.note and f"({column.note})"
    return escape(f"{head} {note}".strip())


def _cell(cell: Cell) -> str:
    text = code(cell.text) if cell.code else escape(cell.text)
    return text + (f" ({escape('; '.join(cell.notes))})" if cell.notes else "")
