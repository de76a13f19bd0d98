"""Tables as data. A column has a heading, and a function that makes a cell from the subject of a row.

All strings are plain text; every renderer escapes them in its own way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

#: Stands for a missing value, such as a diverged loss or a cell without runs.
NOTHING = "–"  # noqa: RUF001


@dataclass(frozen=True)
class Cell:
    """A cell: its value, and smaller lines beneath it."""

    text: str
    notes: tuple[str, ...] = ()
    muted: bool = False
    code: bool = False
    level: str = ""  # "ok", "warning", "fault" or a verdict's outcome: a coloured chip


@dataclass(frozen=True)
class Column:
    """A column."""

    title: str  # the heading
    cell: Callable[[Any], Cell | str]  # makes the cell, or its text, from a row's subject
    note: str = ""  # a smaller line beneath the heading
    group: str = ""  # a heading above the headings of all neighbouring columns with the same group
    numeric: bool = True  # whether it holds numbers, which are aligned right
    brief: bool = True  # whether to show it in a terminal that is too narrow for all columns

    @property
    def heading(self) -> str:
        """The heading, after the group's heading if there is one."""
        return f"{self.group}: {self.title}" if self.group else self.title


@dataclass(frozen=True)
class Row:
    """A row, with a name that identifies it on the page."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The cells' values without their notes."""
        return tuple(cell.text for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """A table: every column applied to the subject of every row.

    Example:
        >>> squares = [Column("n", str), Column("n²", lambda n: str(n * n))]
        >>> Table("squares", "Squares", squares, [("two", 2), ("three", 3)]).rows[1].texts
        ('3', '9')
    """

    name: str  # a name without spaces, unique within the page
    title: str  # the heading
    columns: Sequence[Column]  # the columns
    subjects: Sequence[tuple[str, Any]]  # the name and the subject of each row
    caption: str = ""  # a sentence or two above the table
    remarks: Sequence[str] = ()  # sentences beneath it

    @classmethod
    def of_rows(
        cls,
        name: str,
        title: str,
        heads: Sequence[str],
        rows: Sequence[Sequence[str | Cell]],
        caption: str = "",
        *,
        notes: Sequence[str] = (),
        text_columns: Collection[int] = (0,),
    ) -> Table:
        """Return a table of rows, with notes beneath the headings; `text_columns` are the columns without numbers."""
        columns = [
            Column(head, itemgetter(place), note, numeric=place not in text_columns)
            for place, (head, note) in enumerate(itertools.zip_longest(heads, notes, fillvalue=""))
        ]
        return cls(name, title, columns, [(str(row[0]), row) for row in rows], caption)

    @cached_property
    def rows(self) -> list[Row]:
        """The rows, made on first use."""
        made = [(name, [column.cell(subject) for column in self.columns]) for name, subject in self.subjects]
        return [Row(name, tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row)) for name, row in made]

    @property
    def records(self) -> list[dict[str, str]]:
        """One dict per row, from column heading to value, for use in programs.

        Example:
            >>> squares = [Column("n", str), Column("n²", lambda n: str(n * n))]
            >>> Table("squares", "Squares", squares, [("two", 2)]).records
            [{'n': '2', 'n²': '4'}]
        """
        heads = [column.heading for column in self.columns]
        return [dict(zip(heads, row.texts, strict=True)) for row in self.rows]

    @property
    def head_groups(self) -> list[tuple[str, int]]:
        """The group headings and how many columns each spans; an empty list if no column has a group."""
        if not any(column.group for column in self.columns):
            return []
        return [(head, len(list(columns))) for head, columns in itertools.groupby(self.columns, lambda c: c.group)]


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption on a terminal.

    If the terminal is too narrow for all columns, it shows only the brief ones, and a line names the others.
    """
    from rich.measure import Measurement
    from rich.text import Text

    beneath = [table.caption]
    shown = _rich_table(table, table.columns)
    brief = [column for column in table.columns if column.brief]
    natural = Measurement.get(console, console.options.update(width=10_000), shown).maximum
    if len(brief) < len(table.columns) and natural > console.width:
        shown = _rich_table(table, brief)
        others = ", ".join(column.heading for column in table.columns if not column.brief)
        beneath.append(f"A wider terminal, or a pipe, also shows: {others}.")
    # rich would wrap its own title and caption at the width of a narrow table.
    console.print(Text(table.title, "bold"), highlight=False)
    console.print(shown)
    for sentence in filter(None, beneath):
        console.print(Text(sentence, "table.caption"), highlight=False)


def _rich_table(table: Table, columns: Sequence[Column]) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable()
    kept = [index for index, column in enumerate(table.columns) if column in columns]
    for index in kept:
        column = table.columns[index]
        head = Text(column.heading)
        if column.note:
            head.append(f"\n{column.note}", "dim")
        # Names stay whole, so that they can be copied; other columns wrap first.
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
