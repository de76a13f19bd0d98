"""How Sphinx reads our docstrings: `names` in single backticks, and properties whose sentence has a colon.

Docstrings write code in single backticks, as Markdown does, for arguments and values as well as for functions. Here
such a name becomes code, and a link if the reference has a page for it. A name without a page is not an error, unlike
an explicit reference that leads nowhere.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.environment import BuildEnvironment


class Name(PyXRefRole):
    """A `:py:obj:` that may find nothing."""

    def process_link(
        self, env: BuildEnvironment, refnode: nodes.Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        """Make the name a reference of the Python domain, with a mark that it may lead nowhere."""
        refnode["refdomain"], refnode["reftype"], refnode["may_lead_nowhere"] = "py", "obj", True
        return super().process_link(env, refnode, has_explicit_title, title, target)


def keep_as_code(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Return the plain code if a name leads nowhere."""
    return content if node.get("may_lead_nowhere") else None


def restore_property(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Restore a property's docstring, since napoleon reads the words before a colon as the type."""
    if what == "property" and obj.__doc__:
        lines[:] = [*inspect.cleandoc(obj.__doc__).splitlines(), ""]


def name_aliases(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write `Int64Array | None` where autodoc writes `TypeAliasForwardRef('Int64Array') | None`."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role `name`, conf.py's default, and the steps that run after napoleon (priority 500)."""
    app.add_role("name", Name())
    app.connect("missing-reference", keep_as_code)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("autodoc-process-docstring", restore_property, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
