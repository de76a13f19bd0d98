"""How commands end that cannot do what they were asked: one sentence on stderr, and an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer

from replenish.cli.console import first_process

#: Characters of a message. A failed run's last lines have room.
LONGEST = 6000


@contextmanager
def errors_as_sentences(interrupted: str = "interrupted", *, flags: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turn an expected error into one sentence and exit code 2, an interrupt into another and 130, or as its signal.

    Args:
        interrupted: What to say at an interrupt that says nothing itself.
        flags: What the user calls arguments that a sentence may begin with, by the names that Python has for them.
    """
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        sentence, code = _sentence(error, flags or {}), 2
    except RuntimeError as error:
        from replenish.lab.launch.worker import lost_process

        if (lost := lost_process(error)) is None:
            raise
        sentence, code = lost, 1
    except KeyboardInterrupt as stopped:
        # A run that was stopped says what it saved, and which signal it was.
        sentence, code = str(stopped) or interrupted, 128 + getattr(stopped, "signal_number", 2)
    else:
        return
    if first_process():  # the others of a run that has several found the same
        typer.echo(f"replenish: {_shortened(sentence)}", err=True)
    raise typer.Exit(code)


def _shortened(sentence: str) -> str:
    """Return a sentence without its middle if it repeats a value of the length of a file."""
    if len(sentence) <= LONGEST:
        return sentence
    return f"{sentence[: LONGEST // 2]} ... {sentence[-LONGEST // 2 :]}"


def _sentence(error: Exception, flags: Mapping[str, str]) -> str:
    """Return what an error says; of the system's own, the file and the reason without its number."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    return re.sub(r"^\w+(?= should )", lambda found: flags.get(found.group(), found.group()), str(error))
