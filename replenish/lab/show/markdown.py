"""A page as one Markdown file: the same sentences and tables, and links to the figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from replenish.lab.show.chart import Figure
from replenish.lab.show.page import Page, Section
from replenish.lab.show.table import Cell, Column, Table

#: Characters that Markdown, or HTML inside it, would read as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#&~!])")


def page_markdown(page: Page, other: str) -> str:
    """Return the page as escaped Markdown; `other` is the file name of the HTML page, which has the figures."""
    return "\n".join(_lines(page, other.replace(" ", "%20"))) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is, on one line.

    Example:
        >>> print(escape("a|b <script>"))
        a\|b \<script\>
    """
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return text as inline code that is valid in a table, even if the text has backticks."""
    plain = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def table_lines(table: Table) -> Iterator[str]:
    """Yield the lines of a table and of the remarks beneath it."""
    yield _row(_head(column) for column in table.columns)
    yield _row("---:" if column.numeric else "---" for column in table.columns)
    for row in table.rows:
        yield _row(_cell(cell) for cell in row.cells)
    for remark in table.remarks:
        yield from ("", escape(remark))


def _lines(page: Page, link: str) -> Iterator[str]:
    yield from (f"# {escape(page.title)}", "", escape(page.lead), "")
    yield from (f"The figures are in [the page]({link}) that was written with this file.", "")
    yield " · ".join(f"{escape(fact.label)}: {escape(fact.value)}" for fact in page.facts)
    for notice in page.notices:
        yield from ("", f"> **{escape(notice.title)}**", ">")
        yield from (f"> - {escape(item)}" for item in notice.items)
    for section in page.sections:
        yield from _section(section, link)


def _section(section: Section, link: str) -> Iterator[str]:
    yield from ("", f"## {escape(section.title)}")
    for paragraph in section.paragraphs:
        yield from ("", escape(paragraph))
    if section.code:
        yield from ("", f"    {section.code}")
    if section.findings:
        yield ""
    for finding in section.findings:
        yield f"- {escape(finding.full_sentence)}"
    for block in section.blocks:
        yield from ("", f"### {escape(block.title)}", "", escape(block.caption), "")
        if isinstance(block, Figure):
            yield f"Drawn in [the page]({link}#{block.name})."
        else:
            yield from table_lines(block)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(column: Column) -> str:
    note = column.note if column.note.startswith("(") else column.note and f"({column.note})"
    return escape(f"{column.heading} {note}".strip())


def _cell(cell: Cell) -> str:
    text = code(cell.text) if cell.code else escape(cell.text)
    return text + (f" ({escape('; '.join(cell.notes))})" if cell.notes else "")
