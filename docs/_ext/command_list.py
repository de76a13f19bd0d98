"""The directive `command-list`: a section for each command of `replenish`, from the help that it prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from replenish.cli import app as cli


class CommandList(Directive):
    """A section for each command: its usage, what it does, its arguments and its options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the order of `replenish --help`."""
        root = typer.main.get_command(cli)
        context = root.context_class(root, info_name="replenish")
        return [_section(name, command, context) for name, command in _commands(root)]


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name; a group comes before its commands."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield prefix + name, command
            if hasattr(command, "commands"):
                yield from _commands(command, f"{prefix}{name} ")


def _section(name: str, command: Any, parent: Any) -> nodes.section:
    context = command.context_class(command, info_name=name, parent=parent)
    section = nodes.section(ids=[f"replenish-{name.replace(' ', '-')}"], names=[f"replenish {name}"])
    usage = command.get_usage(context).removeprefix("Usage: ")
    section += nodes.title(text=f"replenish {name}")
    section += nodes.literal_block(usage, usage, language="text")
    for paragraph in (command.help or "").split("\n\n"):
        section += nodes.paragraph(text=" ".join(paragraph.split()))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = nodes.definition_list()
    for term, text in filter(None, records):
        if term != "--help":
            definition = nodes.definition("", nodes.paragraph(text=text))
            rows += nodes.definition_list_item("", nodes.term("", "", nodes.literal(text=term)), definition)
    if len(rows):
        section += rows
    return section


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-list", CommandList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
