"""Where and how commands print."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from replenish.lab.machine import first_process

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

__all__ = ["command_line", "first_process", "output", "print_json", "working"]


def output(width: int = 160) -> Console:
    """Return the console of standard output.

    The width is for where no terminal has one: a path or a name broken in two could not be searched for.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=width)


def working(on: str) -> Status:
    """Return a line on standard error that says what is being done as long as it is; silent without a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(on)


#: How this program is called; another program that uses these commands puts its own name here.
PROGRAM = ["replenish"]


def command_line() -> str:
    """Return the command as it was typed, with the program's plain name."""
    return shlex.join([*PROGRAM, *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Print plain values as JSON, the same way for every command."""
    print(json.dumps(value, indent=2, allow_nan=False))
