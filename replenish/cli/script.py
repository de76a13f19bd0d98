"""Scripts as arguments of commands: what they are, and where the command's own options end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

Script = Annotated[
    list[str], typer.Argument(metavar="SCRIPT|-m MODULE [ARGUMENT]...", help="what to run, and its own arguments")
]


class ScriptCommand(TyperCommand):
    """A command whose own options end where the script begins, or `-m`: what follows is the script's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the mark that ends options before `-m`, which would otherwise be read as an option."""
        flags = {name for each in self.params if getattr(each, "is_flag", False) for name in each.opts}
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] not in ("-m", "--", "--help"):
            place += 1 if "=" in args[place] or args[place] in flags else 2
        if args[place : place + 1] == ["-m"]:
            args = [*args[:place], "--", *args[place:]]
        return super().parse_args(ctx, args)


def check_script(script: list[str]) -> None:
    """Refuse what cannot be run."""
    if script[0] == "-m":
        if len(script) == 1:
            raise ValueError("-m should be followed by the name of a module")
        return
    if script[0].startswith("-"):
        raise ValueError(f"what is run should be a script or -m and a module, but got {script[0]}")
    if not Path(script[0]).is_file():
        raise ValueError(f"{script[0]} is not a file; give the path of a Python script, or -m and a module")


def interpreter_options() -> list[str]:
    """Return the options of this interpreter that the script's is to have: -u and -W, say, but not -m."""
    found: list[str] = []
    words = iter(sys.orig_argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-m", "-c", "-", "--"):
            break
        found.append(word)
        if word in ("-W", "-X"):
            found.append(next(words))
    return found
