"""The directive `order-list`: a table of the orders, by the names that users type."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from replenish.orders import ORDERS


class OrderList(Directive):
    """A table with a row for each order."""

    def run(self) -> list[nodes.Node]:
        """Return the table, written as reStructuredText and parsed."""
        lines = [".. list-table::", "   :header-rows: 1", "", *_row("name", "class", "what it does", "options")]
        for name, entry in ORDERS.items():
            options = ", ".join(f"``{option}``" for option in entry.options)
            lines += _row(f"``{name}``", f"`{entry.order_class.__name__}`", entry.description, options)
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, "the list of orders"), self.content_offset, parent)
        return parent.children


def _row(*cells: str) -> list[str]:
    return [f"   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(cells)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("order-list", OrderList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
