"""Help in groups, for a command that has many options: plain text, a heading for each group."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help has its options under the headings that they were declared with (`rich_help_panel`)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, group by group in the order of their declaration, those without one last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or "Other", []).append(record)
        for name, records in sorted(groups.items(), key=lambda group: group[0] == "Other"):
            with formatter.section(name):
                formatter.write_dl(records)
