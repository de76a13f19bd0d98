"""Stopping between two steps: the signals that ask for it, and the exceptions raised once all is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """A signal stopped a run, or the waiting for runs. What was under way is saved, or continues elsewhere."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class GivenUpError(Exception):
    """Nobody needs the remaining runs any more: they are ended, on a cluster too."""


class OutOfTimeError(GivenUpError):
    """The budget of time was spent."""


class StopRequest:
    """The signal that asked the run to stop, or 0."""

    asked = 0

    def ask(self, number: int, frame: object) -> None:
        """Record a signal; a second Ctrl-C interrupts at once."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = number


def raise_stopped(number: int, frame: object) -> NoReturn:
    """Handle a signal as Ctrl-C is handled: by an exception."""
    raise Stopped("", number)


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Handle signals by `handler` inside the block; outside the main thread do nothing."""
    if threading.current_thread() is not threading.main_thread():  # Python allows handlers only there
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
    """Record Ctrl-C and a cluster's SIGTERM, so that the run can save between two steps."""
    request = StopRequest()
    with handling(request.ask, signal.SIGINT, signal.SIGTERM):
        yield request
    if request.asked:  # it came so late that the run ended; the caller still has to stop
        signal.raise_signal(request.asked)
