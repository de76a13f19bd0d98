"""Stopping between two steps: signals that ask for it, and what is raised once all is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """A signal asked a run, or whoever waits for runs, to stop: what was under way is saved or goes on elsewhere."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class GivenUpError(Exception):
    """Whoever waits for runs wants none of them any more: they are ended, on a cluster too."""


class OutOfTimeError(GivenUpError):
    """The budget of time was spent."""


class StopRequest:
    """The signal that asked the run to stop, or 0."""

    asked = 0

    def ask(self, number: int, frame: object) -> None:
        """Note a signal; a second Ctrl-C is an interrupt at once."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = number


def raise_stopped(number: int, frame: object) -> NoReturn:
    """Handle a signal by ending what waits, as Ctrl-C does."""
    raise Stopped("", number)


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Have signals handled so for a while."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can have handlers
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Let Ctrl-C and a cluster's SIGTERM be noticed between two steps, so that the run can be saved."""
    request = StopRequest()
    with handling(request.ask, signal.SIGINT, signal.SIGTERM):
        yield request
    if request.asked:  # so late that the run ended; whoever started it still has to stop
        signal.raise_signal(request.asked)
