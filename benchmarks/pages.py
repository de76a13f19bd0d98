"""Write measurements between two comments of a Markdown page."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent


def write_between(page: str, part: str, text: str) -> None:
    """Put `text` between the comments `begin: part` and `end: part` of a page, named from the project's root."""
    path = ROOT / page
    begin, end = f"<!-- begin: {part} -->", f"<!-- end: {part} -->"
    old = path.read_text()
    if old.count(begin) != 1 or old.count(end) != 1:
        raise SystemExit(f"{page} should have the comments {begin} and {end} once each; nothing was written")
    head, tail = old.split(begin)[0], old.split(end)[1]
    path.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")
