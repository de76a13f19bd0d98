"""Put tables of experiments in place of lines `<!-- experiments: SCALE GROUP -->`."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

from replenish.lab.experiments.table import experiments_table
from replenish.lab.show.markdown import table_lines


def insert_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace every line that names a scale and a group with the table of that group's experiments."""

    def table(found: re.Match[str]) -> str:
        scale, group = found.groups()
        head, rule, *rows = table_lines(experiments_table(scale))
        chosen = [row for row in rows if row.startswith(f"| `{group}")]
        if not chosen:
            raise ValueError(f"{docname} names the group {group!r}, which has no experiments")
        return "\n".join([head, rule, *chosen])

    source[0] = re.sub(r"^<!-- experiments: (\w+) (\w+) -->$", table, source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Insert the tables as pages are read."""
    app.connect("source-read", insert_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
