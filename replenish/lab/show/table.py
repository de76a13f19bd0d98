"""Tables: columns are declared once, each with its heading and how to get its cell from what a row is about.

All strings are plain text; every renderer escapes them in its own way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

#: A value that is not there: a diverged loss, a cell without runs.
NOTHING = "–"  # noqa: RUF001


@dataclass(frozen=True)
class Cell:
    """A cell: its value, and smaller lines beneath it."""

    text: str
    notes: tuple[str, ...] = ()
    muted: bool = False
    code: bool = False
    level: str = ""  # "ok", "warning" or "fault": a coloured chip


@dataclass(frozen=True)
class Column:
    """A column: its heading, and its cell for what a row is about."""

    title: str  # the heading
    cell: Callable[[Any], Cell | str]  # makes the cell, or its text, of a row's subject
    note: str = ""  # a smaller line beneath the heading
    group: str = ""  # columns that follow each other with one group share a heading above theirs
    numeric: bool = True  # whether it holds numbers, which stand at the right
    brief: bool = True  # whether a terminal that is too narrow for all columns shows it too

    @property
    def heading(self) -> str:
        """The heading with that of its group."""
        return f"{self.group}: {self.title}" if self.group else self.title


@dataclass(frozen=True)
class Row:
    """A row, with a name by which a reader of the page can find it."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The cells' values without what stands beneath them."""
        return tuple(cell.text for cell in self.cells)


@dataclass(frozen=True)
class Origin:
    """What made the numbers of a table: a command, a commit, and how many runs they made."""

    command: str
    commit: str
    runs: int


@dataclass(frozen=True)
class Table:
    """What the columns make of the subjects of the rows, with remarks below and where its numbers come from.

    Example:
        >>> squares = [Column("n", str), Column("n²", lambda n: str(n * n))]
        >>> Table("squares", "Squares", squares, [("two", 2), ("three", 3)]).rows[1].texts
        ('3', '9')
    """

    name: str  # a short name without spaces
    title: str  # the heading
    columns: Sequence[Column]  # how to make each cell
    subjects: Sequence[tuple[str, Any]]  # what the rows are about, each with the name of its row
    caption: str = ""  # a sentence or two
    remarks: Sequence[str] = ()  # sentences beneath
    origins: Sequence[Origin] = ()  # what made the numbers

    @cached_property
    def rows(self) -> list[Row]:
        """The rows, made when first asked for."""
        made = [(name, [column.cell(subject) for column in self.columns]) for name, subject in self.subjects]
        return [Row(name, tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row)) for name, row in made]

    @property
    def records(self) -> list[dict[str, str]]:
        """The values by the headings of their columns, row by row: for programs that do not look at tables.

        Example:
            >>> squares = [Column("n", str), Column("n²", lambda n: str(n * n))]
            >>> Table("squares", "Squares", squares, [("two", 2)]).records
            [{'n': '2', 'n²': '4'}]
        """
        heads = [column.heading for column in self.columns]
        return [dict(zip(heads, row.texts, strict=True)) for row in self.rows]

    @property
    def head_groups(self) -> list[tuple[str, int]]:
        """The headings above the columns' own, with how many each spans; an empty list if there are none."""
        if not any(column.group for column in self.columns):
            return []
        return [(head, len(list(columns))) for head, columns in itertools.groupby(self.columns, lambda c: c.group)]
