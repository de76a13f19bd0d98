"""How commands print, and how they fail: with one sentence on standard error and an exit code."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from replenish.lab.machine import first_process

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

__all__ = ["PROGRAM", "command_line", "errors_as_sentences", "first_process", "output", "print_json", "working"]

#: The program's name. Another program that uses these commands puts its own name here.
PROGRAM = ["replenish"]


def output(width: int = 160) -> Console:
    """Return a console for standard output.

    It is `width` characters wide if the output is not a terminal, so that `grep` finds paths and names whole.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=width)


def working(on: str) -> Status:
    """Return a context manager that shows a status line on standard error, if that is a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(on)


def command_line() -> str:
    """Return the command that the user typed, with the program's plain name."""
    return shlex.join([*PROGRAM, *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Print plain values as JSON."""
    print(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def errors_as_sentences(interrupted: str = "interrupted", *, flags: Mapping[str, str] | None = None) -> Iterator[None]:
    """Print an expected error as one sentence and exit with 2, or with 128 plus the signal's number if interrupted.

    Args:
        interrupted: The sentence for an interrupt without a message.
        flags: Maps the Python name of an argument to the command's flag. A message that begins with the name shows
            the flag instead.
    """
    try:
        yield
    except (TypeError, ValueError, OSError, MemoryError) as error:
        sentence, code = _sentence(error, flags or {}), 2
    except RuntimeError as error:
        from replenish.lab.launch.worker import lost_process

        if (lost := lost_process(error)) is None:
            raise
        sentence, code = lost, 1
    except KeyboardInterrupt as stopped:
        # A stopped run's message says what was saved and which signal stopped it.
        sentence, code = str(stopped) or interrupted, 128 + getattr(stopped, "signal_number", 2)
    else:
        return
    if first_process():  # other processes of the same run have the same error
        typer.echo(f"replenish: {sentence}", err=True)
    raise typer.Exit(code)


def _sentence(error: Exception, flags: Mapping[str, str]) -> str:
    """Return the error's message; for an error of the operating system, the file and the reason."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory; take smaller sizes ({error})"
    return re.sub(r"^\w+(?= should )", lambda found: flags.get(found.group(), found.group()), str(error))
