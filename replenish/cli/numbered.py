"""Numbers as arguments of commands."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

from replenish.cli.errors import errors_as_sentences


class NumberedCommand(TyperCommand):
    """A command whose first argument counts from 0: it says so of a negative number, which looks like an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a negative number in the first place."""
        with errors_as_sentences():
            if args and re.fullmatch(r"-\d+", args[0]):
                raise ValueError(f"{self.params[0].name} should be at least 0, but got {args[0]}")
        return super().parse_args(ctx, args)
