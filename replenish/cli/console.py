"""How commands print, and how they fail: one sentence on stderr and an exit code."""

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
#: Most characters of a message. The last lines of a failed run fit.
LONGEST = 6000


def output(width: int = 160) -> Console:
    """Return the console of standard output.

    `width` applies where the output is not a terminal: a path or a name broken in two could not be searched for.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=width)


def working(on: str) -> Status:
    """Return a status line on standard error, shown while a `with` block runs; silent without a terminal."""
    from rich.console import Console

    return Console(stderr=True).status(on)


def command_line() -> str:
    """Return the command as it was typed, with the program's plain name."""
    return shlex.join([*PROGRAM, *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Print plain values as JSON, the same way for every command."""
    print(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def errors_as_sentences(interrupted: str = "interrupted", *, flags: Mapping[str, str] | None = None) -> Iterator[None]:
    """Print an expected error as one sentence and exit with 2; after an interrupt exit with 130 or its signal's code.

    Args:
        interrupted: The sentence for an interrupt without a message.
        flags: Python's names of arguments with the flags of the command, which the sentence then shows instead.
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
        # The message of a stopped run says what was saved and which signal stopped it.
        sentence, code = str(stopped) or interrupted, 128 + getattr(stopped, "signal_number", 2)
    else:
        return
    if first_process():  # other processes of the same run have the same error
        typer.echo(f"replenish: {_shortened(sentence)}", err=True)
    raise typer.Exit(code)


def _shortened(sentence: str) -> str:
    """Return a sentence, without its middle if it is very long, as when it repeats the content of a file."""
    if len(sentence) <= LONGEST:
        return sentence
    return f"{sentence[: LONGEST // 2]} ... {sentence[-LONGEST // 2 :]}"


def _sentence(error: Exception, flags: Mapping[str, str]) -> str:
    """Return the error's message; for an error of the system, the file and the reason without its number."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory; take smaller sizes ({error})"
    return re.sub(r"^\w+(?= should )", lambda found: flags.get(found.group(), found.group()), str(error))
