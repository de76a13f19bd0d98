"""How commands end that cannot do what they were asked: one sentence on stderr, and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from replenish.cli.console import first_process


@contextmanager
def errors_as_sentences(interrupted: str = "interrupted") -> Iterator[None]:
    """Turn an expected error into one sentence and exit code 2, an interrupt into another and 130, or as its signal.

    An interrupt that says nothing itself is told by `interrupted`.
    """
    try:
        yield
    except (TypeError, ValueError, OSError) as error:
        sentence, code = _sentence(error), 2
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
        typer.echo(f"replenish: {sentence}", err=True)
    raise typer.Exit(code)


def _sentence(error: Exception) -> str:
    """Return what an error says; of the system's own, the file and the reason without its number."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    return str(error)
