"""Stopping between two steps: the signals that ask for it, and the exceptions raised after saving."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Stopped(KeyboardInterrupt):
    """A signal stopped one or several runs, which have saved."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number = signal_number


class OutOfTimeError(Exception):
    """The budget of time was spent."""


def check_deadline(deadline: float | None) -> None:
    """Raise if a deadline, a time of `time.monotonic`, has passed."""
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTimeError("the budget was spent")


class StopRequest:
    """The signal that asked the run to stop, or 0."""

    asked = 0

    def ask(self, number: int, frame: object) -> None:
        """Record a signal; a second Ctrl-C interrupts at once."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = number


def raise_stopped(number: int, frame: object) -> NoReturn:
    """Raise `Stopped` for a signal, as Python raises `KeyboardInterrupt` for Ctrl-C."""
    raise Stopped("", number)


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Handle signals with `handler` inside the block. Do nothing in threads other than the main one."""
    if threading.current_thread() is not threading.main_thread():  # Python allows no handlers there
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
    """Record Ctrl-C and SIGTERM, so that the run can save between two steps."""
    request = StopRequest()
    with handling(request.ask, signal.SIGINT, signal.SIGTERM):
        yield request
    if request.asked:  # the run may have ended without a further look at it; the caller still has to stop
        signal.raise_signal(request.asked)
