"""How commands end that cannot do what they were asked: one sentence on stderr, and an exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def one_sentence(interrupted: str = "interrupted") -> Iterator[None]:
    """Turn an expected error into one sentence and exit code 2, an interrupt into another and 130, or as its signal.

    Args:
        interrupted: What to say at an interrupt that says nothing itself.
    """
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        sentence, code = str(error), 2
    except KeyboardInterrupt as stopped:
        # A run that was stopped says what it saved, and which signal it was.
        sentence, code = str(stopped) or interrupted, 128 + getattr(stopped, "signal_number", 2)
    else:
        return
    if first_process():  # the others of a run that has several found the same
        typer.echo(f"replenish: {sentence}", err=True)
    raise typer.Exit(code)


def first_process() -> bool:
    """Tell whether this is the process that speaks: with several, the first."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) in ("", "0")
