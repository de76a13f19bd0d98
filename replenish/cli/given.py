"""Which options a command was given, by the names that its user knows."""

from __future__ import annotations

from typing import Any


def given_flags(context: Any) -> dict[str, str]:
    """Return the parameters that were given on the command line, each with its flag or its name."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is not None and source.name == "COMMANDLINE":
            found[parameter.name] = parameter.opts[0]
    return found
