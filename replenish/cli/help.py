"""Help in groups, for commands with many options: what is run, how it is trained, and where.

Plain text: the panels that typer has for this need rich, which would take most of the time that help takes.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

#: Options by what they say; those of neither group say how a network is trained.
WHAT = "data orders seeds scale command metric metric_json higher_is_better margin until_decided max_seeds budget"
WHERE = "runs jobs accelerator devices num_nodes threads compile_model tensorboard launcher as_json"


class GroupedCommand(TyperCommand):
    """A command with so many options that they are read group by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options under the titles of their groups."""
        groups: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Arguments", "What is run", "How it is trained", "Where it is run", "Options")
        }
        for parameter in self.get_params(ctx):
            told = parameter.get_help_record(ctx)
            if told is not None:
                groups[_title(parameter)].append(told)
        for title, lines in groups.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


def _title(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name == "help":
        return "Options"
    if parameter.name in WHAT.split():
        return "What is run"
    return "Where it is run" if parameter.name in WHERE.split() else "How it is trained"
