"""Jobs started, followed until each has ended, and stopped together: what all launchers have in common."""

from __future__ import annotations

import contextlib
import importlib
import math
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from replenish.lab.jobs import WatchJobs, Work
from replenish.lab.launch.progress import Follower
from replenish.lab.stopping import OutOfTimeError, Stopped, handling, raise_stopped

SECONDS_BETWEEN_LOOKS = 0.2
#: How long another machine's files may take to be seen here.
SECONDS_FOR_FILES = 15.0


class Task(Protocol):
    """A job that has been started: a process, a job of a cluster."""

    def over(self) -> bool:
        """Return whether it is not executed any more, with or without a result."""

    def reason(self) -> str:
        """Return in a line why it is over without a result."""

    def stop(self, number: int) -> None:
        """Ask it to save and end, as by this signal."""
        return  # some need nothing

    def finish(self) -> None:
        """Let it go: its run has a result."""
        return


def supervise(
    jobs: Sequence[Work],
    parallel: int,
    watch: WatchJobs,
    start: Callable[[Work], Task],
    *,
    stop_at_failure: bool = False,
    seconds_to_save: float = math.inf,
    seconds_for_files: float = 0.0,
    deadline: float | None = None,
) -> list[dict[str, Any]]:
    """Start every job that has not ended, `parallel` at once, and return how all ended.

    With `stop_at_failure` the others are stopped, so that they save, when one could not be run. Tasks that are asked to
    stop are waited for so many `seconds_to_save`; another machine's files may take `seconds_for_files` to be seen here.

    Raises:
        Stopped: By a signal; every run has been asked to save where it stands.
        ChildProcessError: A run could not be run.
    """
    followers = [Follower(job, partial(watch, place)) for place, job in enumerate(jobs)]
    results = [follower.look() for follower in followers]
    left = [place for place in reversed(range(len(jobs))) if results[place] is None]
    running: dict[int, Task] = {}
    gone: dict[int, float] = {}  # since when a task that has no result is over
    failures: dict[int, str] = {}

    def look() -> None:
        """Take out the tasks that have ended."""
        for place, task in list(running.items()):
            over = task.over()  # asked before looking: what it wrote until then is seen
            if (result := followers[place].look()) is not None:
                results[place] = result
                running.pop(place).finish()
            elif not over:
                gone.pop(place, None)
            elif time.monotonic() - gone.setdefault(place, time.monotonic()) >= seconds_for_files:
                failures[place] = f"the run in {jobs[place].folder} could not be run: {running.pop(place).reason()}"
                watch(place, {"event": "error", "message": failures[place]})

    def stop(number: int) -> None:
        """Ask every task to save, and wait until it has."""
        until = time.monotonic() + seconds_to_save
        for task in running.values():
            task.stop(number)
        while running and time.monotonic() < until:
            for place in [place for place, task in running.items() if task.over()]:
                running.pop(place).finish()
                with contextlib.suppress(ValueError):  # a garbled record, which is what all are stopped for
                    followers[place].look()
            time.sleep(SECONDS_BETWEEN_LOOKS)

    try:
        with handling(raise_stopped, signal.SIGTERM):
            while left or running:
                while left and len(running) < parallel:
                    place = left.pop()
                    running[place] = start(jobs[place])
                time.sleep(SECONDS_BETWEEN_LOOKS)
                look()
                check_deadline(deadline)
                if failures and stop_at_failure:
                    left.clear()
                    stop(signal.SIGTERM)
    except KeyboardInterrupt as asked:
        number = getattr(asked, "signal_number", signal.SIGINT)
        stop(number)
        message = "stopped; every run has saved where it stands, so give the same command again"
        raise Stopped(message, number) from None
    except Exception:  # nobody would follow the others any more
        stop(signal.SIGTERM)
        raise
    if failures:
        others = f" (and so for {len(failures) - 1} others)" if len(failures) > 1 else ""
        raise ChildProcessError(failures[min(failures)] + others)
    return [result for result in results if result is not None]


def check_deadline(deadline: float | None) -> None:
    """Raise if it is later than a deadline, by `time.monotonic`."""
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTimeError("the budget was spent")


def first_line(text: str) -> str:
    """Return the first line of a message that may have many."""
    return text.strip().partition("\n")[0]


def extra(module: str, name: str) -> Any:
    """Return a package that the extra `name` installs."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ValueError(f"{module} is not installed: pip install 'replenish[{name}]'") from None
