"""What a report holds, before it is a page or Markdown: sections of sentences, tables and figures.

All strings are plain text; `page` and `markdown` escape them, each in its own way.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Column:
    """The head of a column; columns that follow each other with one `group` share a head above theirs."""

    title: str
    note: str = ""
    group: str = ""
    numeric: bool = False


@dataclass(frozen=True)
class Row:
    """A row, with a name by which a reader of the page can find it."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Origin:
    """What made the numbers of a table: a command, a commit, and how many runs they made."""

    command: str
    commit: str
    runs: int


@dataclass(frozen=True)
class Table:
    """A table with its caption, remarks below it and where its numbers come from."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()


@dataclass(frozen=True)
class Series:
    """A quantity over the epochs: its median over the seeds, and the smallest and the largest."""

    median: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class Stray:
    """A run that did not finish, drawn on its own."""

    path: str
    status: str
    epochs: tuple[int, ...]
    train_loss: tuple[float | None, ...]
    test_error: tuple[float | None, ...]


@dataclass(frozen=True)
class Line:
    """One line of a figure: the finished runs of one config."""

    name: str
    label: str
    runs: tuple[str, ...]
    drops: tuple[float, ...]
    epochs: tuple[int, ...]
    train_loss: Series
    test_error: Series
    strays: tuple[Stray, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Training loss and test error against the effective epoch."""

    name: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    last_epoch: int


@dataclass(frozen=True)
class Finding:
    """A paired difference, what it allows to be said, and what the paper says about the same.

    Attributes:
        name: A name within the report.
        first: What is compared.
        second: With what.
        sentence: What the data allow to be said.
        paper: The paper's difference, where it prints both errors.
        paper_sentence: The same in words, or "".
        state: "difference", "open" (the interval includes no difference, or Holm's method does) or "unknown".
        mean: The mean difference.
        low: The lower end of its 95 % interval.
        high: The upper end.
        n: Pairs.
        p_value: Of the paired test.
        adjusted_p: After Holm's method.
    """

    name: str
    first: str
    second: str
    sentence: str
    paper: float | None
    paper_sentence: str
    state: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    p_value: float | None
    adjusted_p: float | None


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading of its own."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    blocks: tuple[Table | Figure, ...] = ()


@dataclass(frozen=True)
class Notice:
    """Something that a reader must not miss, with the runs that it is about."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    introduction: str
    facts: tuple[tuple[str, str], ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...]


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return a figure's values as plain data for JSON."""
    import dataclasses

    return dataclasses.asdict(figure)
