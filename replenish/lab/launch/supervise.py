"""Jobs started, followed until each has ended, and stopped together: what all launchers have in common.

A run in another process, perhaps on another machine, is followed through its folder. Its process writes its progress to
`.progress.json` (`progress_writer`). Whoever waits reads that file, the metrics and the result, and passes the same
events on as a run in this process would (`Follower`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from replenish.lab.atomic_files import write_atomically
from replenish.lab.jobs import WatchJobs, Work
from replenish.lab.stopping import OutOfTimeError, Stopped, handling, raise_stopped

PROGRESS = ".progress.json"
#: Runs report their steps often; a shared file system need not carry them all.
SECONDS_BETWEEN_REPORTS = 1.0
SECONDS_BETWEEN_LOOKS = 0.2


def progress_writer(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Return a watch for `Job.run` that writes the run's progress into its folder."""
    attempt = f"{os.getpid()}-{time.time_ns()}"
    progress: dict[str, Any] = {"attempt": attempt, "warnings": [], "start": None, "step": None, "stopped": None}
    reported = 0.0

    def write(event: dict[str, Any]) -> None:
        nonlocal reported
        kind = event["event"]
        if kind == "warning":
            progress["warnings"].append(event)
            return
        if kind != "start":
            # Only the first process of a run gets its events; the others never see a start.
            too_early = kind == "step" and time.monotonic() - reported <= SECONDS_BETWEEN_REPORTS
            if kind not in ("step", "stopped") or progress["start"] is None or too_early:
                return
        progress[kind] = event
        with contextlib.suppress(OSError):  # a run is worth more than its progress
            write_atomically(folder / PROGRESS, json.dumps(progress).encode())
        reported = time.monotonic()

    return write


def forget_progress(job: Work) -> None:
    """Remove the progress of an earlier process: the run is about to start again, or has ended."""
    (job.folder / PROGRESS).unlink(missing_ok=True)


class Follower:
    """Passes to a watch what is new of a run in another process, each time that it looks.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from replenish.lab.config import RunConfig
        >>> from replenish.lab.jobs import Job
        >>> from replenish.lab.runs import RunFolder
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = Job(RunConfig(), Path(folder))
        ...     RunFolder(folder).write_result({"status": "finished", "test_error": 2.5})
        ...     Follower(job, lambda event: print(event["event"])).look()
        end
        {'status': 'finished', 'test_error': 2.5}
    """

    def __init__(self, job: Work, watch: Callable[[dict[str, Any]], None]) -> None:
        self._job, self._watch = job, watch
        self._epochs = len(job.metrics())  # those of an earlier call are not news
        self._last: Mapping[str, Any] | None = None

    def look(self) -> dict[str, Any] | None:
        """Pass on what is new, and return the result of a run that has ended."""
        progress = None
        try:
            result = self._job.result()  # first: what the run wrote before its result is then visible too
            with contextlib.suppress(FileNotFoundError):
                progress = json.loads((self._job.folder / PROGRESS).read_text())
            metrics = self._job.metrics()
        except OSError:  # another machine is replacing a file: look again later
            return None
        if progress is not None:
            self._pass_on(progress, metrics)
        if result is not None:
            forget_progress(self._job)
            self._watch({"event": "end", "result": result})
        return result

    def _pass_on(self, progress: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> None:
        before = self._last
        if before is not None and before["attempt"] != progress["attempt"]:
            self._watch({"event": "stopped", "message": "was stopped, and has been started again"})
            before = None
        if before is None:
            for event in (*progress["warnings"], progress["start"]):
                self._watch(event)
        for line in metrics[self._epochs :]:
            self._watch({"event": "epoch", **line})
        for kind in ("step", "stopped"):
            if progress[kind] is not None and (before is None or progress[kind] != before[kind]):
                self._watch(progress[kind])
        self._epochs, self._last = len(metrics), progress


class Task(Protocol):
    """A job that has been started: a process, a job of a cluster."""

    def over(self) -> bool:
        """Return whether it has ended, with or without a result."""

    def reason(self) -> str:
        """Return in one line why it ended without a result."""

    def stop(self, number: int) -> None:
        """Ask it to save and end, as by this signal. By default nothing: some tasks outlive the call."""
        return

    def finish(self) -> None:
        """Release it after its run has a result. By default nothing."""
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

    With `stop_at_failure`, when one could not be run, the others are stopped, so that they save. Tasks that are asked
    to stop have `seconds_to_save`. A task that is over without a result has `seconds_for_files` until it appears.

    Raises:
        Stopped: A signal came; every run has been asked to save.
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
        message = "stopped; every run has saved, so give the same command again to resume"
        raise Stopped(message, number) from None
    except Exception:  # nobody would follow the others any more
        runs.stop(signal.SIGTERM, seconds_to_save)
        raise
    if failures := runs.failures:
        others = f" (and so for {len(failures) - 1} others)" if len(failures) > 1 else ""
        raise ChildProcessError(failures[min(failures)] + others)
    return [result for result in runs.results if result is not None]


class _Supervised:
    """The jobs of one call: waiting, running, ended, or failed to run."""

    def __init__(
        self, jobs: Sequence[Work], watch: WatchJobs, start: Callable[[Work], Task], seconds_for_files: float
    ) -> None:
        self._jobs, self._watch, self._start, self._seconds_for_files = jobs, watch, start, seconds_for_files
        self._followers = [Follower(job, partial(watch, place)) for place, job in enumerate(jobs)]
        self.results = [follower.look() for follower in self._followers]
        self.left = [place for place in reversed(range(len(jobs))) if self.results[place] is None]
        self.running: dict[int, Task] = {}
        self.failures: dict[int, str] = {}
        self._over_since: dict[int, float] = {}  # tasks without a result

    def fill(self, parallel: int) -> None:
        """Start jobs until `parallel` of them run."""
        while self.left and len(self.running) < parallel:
            place = self.left.pop()
            self.running[place] = self._start(self._jobs[place])

    def look(self) -> None:
        """Take out the tasks that have ended."""
        for place, task in list(self.running.items()):
            over = task.over()  # before looking: so what it wrote until then is seen
            if (result := self._followers[place].look()) is not None:
                self.results[place] = result
                self.running.pop(place).finish()
            elif not over:
                self._over_since.pop(place, None)
            elif time.monotonic() - self._over_since.setdefault(place, time.monotonic()) >= self._seconds_for_files:
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
