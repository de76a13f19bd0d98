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
    runs = _Supervised(jobs, watch, start, seconds_for_files)
    try:
        with handling(raise_stopped, signal.SIGTERM):
            while runs.left or runs.running:
                runs.fill(parallel)
                time.sleep(SECONDS_BETWEEN_LOOKS)
                runs.look()
                check_deadline(deadline)
                if runs.failures and stop_at_failure:
                    runs.left.clear()
                    runs.stop(signal.SIGTERM, seconds_to_save)
    except KeyboardInterrupt as asked:
        number = getattr(asked, "signal_number", signal.SIGINT)
        runs.stop(number, seconds_to_save)
        message = "stopped; every run has saved where it stands, so give the same command again"
        raise Stopped(message, number) from None
    except Exception:  # nobody would follow the others any more
        runs.stop(signal.SIGTERM, seconds_to_save)
        raise
    if failures := runs.failures:
        others = f" (and so for {len(failures) - 1} others)" if len(failures) > 1 else ""
        raise ChildProcessError(failures[min(failures)] + others)
    return [result for result in runs.results if result is not None]


class _Supervised:
    """Jobs that wait, run, have ended or could not be run."""

    def __init__(
        self, jobs: Sequence[Work], watch: WatchJobs, start: Callable[[Work], Task], seconds_for_files: float
    ) -> None:
        self._jobs, self._watch, self._start, self._seconds_for_files = jobs, watch, start, seconds_for_files
        self._followers = [Follower(job, partial(watch, place)) for place, job in enumerate(jobs)]
        self.results = [follower.look() for follower in self._followers]
        self.left = [place for place in reversed(range(len(jobs))) if self.results[place] is None]
        self.running: dict[int, Task] = {}
        self.failures: dict[int, str] = {}
        self._gone: dict[int, float] = {}  # since when a task that has no result is over

    def fill(self, parallel: int) -> None:
        """Start jobs until so many run."""
        while self.left and len(self.running) < parallel:
            place = self.left.pop()
            self.running[place] = self._start(self._jobs[place])

    def look(self) -> None:
        """Take out the tasks that have ended."""
        for place, task in list(self.running.items()):
            over = task.over()  # asked before looking: what it wrote until then is seen
            if (result := self._followers[place].look()) is not None:
                self.results[place] = result
                self.running.pop(place).finish()
            elif not over:
                self._gone.pop(place, None)
            elif time.monotonic() - self._gone.setdefault(place, time.monotonic()) >= self._seconds_for_files:
                reason = self.running.pop(place).reason()
                self.failures[place] = f"the run in {self._jobs[place].folder} could not be run: {reason}"
                self._watch(place, {"event": "error", "message": self.failures[place]})

    def stop(self, number: int, seconds_to_save: float) -> None:
        """Ask every task to save, and wait until it has."""
        until = time.monotonic() + seconds_to_save
        for task in self.running.values():
            task.stop(number)
        while self.running and time.monotonic() < until:
            for place in [place for place, task in self.running.items() if task.over()]:
                self.running.pop(place).finish()
                with contextlib.suppress(ValueError):  # a garbled record, which is what all are stopped for
                    self._followers[place].look()
            time.sleep(SECONDS_BETWEEN_LOOKS)


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
