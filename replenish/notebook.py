"""Results in a notebook: a small table in plain HTML, in the notebook's colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LEFT = ' style="text-align:left"'


def html_table(title: str, rows: Iterable[Sequence[str]], heads: Sequence[str] = (), notes: Iterable[str] = ()) -> str:
    """Return rows as a table under a title, with notes below; all arguments are plain text, which is escaped.

    Example:
        >>> html_table("an order", [("batch size", "64")])[:25]
        '<p><b>an order</b></p><ta'
    """
    head = f"<tr>{''.join(f'<th{_LEFT}>{escape(text)}</th>' for text in heads)}</tr>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td{_LEFT}>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    notes_below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<p><b>{escape(title)}</b></p><table>{head}{body}</table>{notes_below}"
