"""How a run goes, told from one process to another by the run's folder, which all machines see.

A run's process writes where it is to `.progress.json` (`tell_progress`); whoever waits reads that file and the metrics,
and hears the same events as from a run of its own (`Follower`).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import write_atomically
from replenish.lab.jobs import Work

PROGRESS = ".progress.json"
#: Steps are reported often by a run; a shared file system need not carry them all.
SECONDS_BETWEEN_REPORTS = 1.0


def tell_progress(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Return what to give `Job.run` as its watch, so that others can follow the run in its folder."""
    attempt = f"{os.getpid()}-{time.time_ns()}"
    told: dict[str, Any] = {"attempt": attempt, "warnings": [], "start": None, "step": None, "stopped": None}
    reported = 0.0

    def tell(event: dict[str, Any]) -> None:
        nonlocal reported
        kind = event["event"]
        if kind == "warning":
            told["warnings"].append(event)
        # A process beside the first of a run hears nothing of it and so has not started.
        elif kind == "start" or (
            told["start"] is not None
            and (kind == "stopped" or (kind == "step" and time.monotonic() - reported > SECONDS_BETWEEN_REPORTS))
        ):
            told[kind] = event
            # Progress is not worth a run: if it cannot be written, the run goes on.
            with contextlib.suppress(OSError):
                write_atomically(folder / PROGRESS, json.dumps(told).encode())
            reported = time.monotonic()

    return tell


class Follower:
    """Tells a watch what is new of a run that another process executes, each time that it looks.

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
        self._epochs = len(job.metrics())  # those of an earlier call are no news
        self._heard: Mapping[str, Any] | None = None

    def look(self) -> dict[str, Any] | None:
        """Tell what is new, and return the result of a run that has ended."""
        try:
            result = self._job.result()  # first: what the run wrote before is then seen too
            progress, metrics = self._progress(), self._job.metrics()
        except OSError:  # another machine has just replaced a file: at the next look, then
            return None
        if progress is not None:
            self._tell(progress, metrics)
        if result is not None:
            forget_progress(self._job)
            self._watch({"event": "end", "result": result})
        return result

    def _tell(self, progress: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> None:
        before = self._heard
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
        self._epochs, self._heard = len(metrics), progress

    def _progress(self) -> dict[str, Any] | None:
        try:
            return json.loads((self._job.folder / PROGRESS).read_text())
        except FileNotFoundError:
            return None


def forget_progress(job: Work) -> None:
    """Remove what an earlier process told of a run that is about to be started again, or has ended."""
    (job.folder / PROGRESS).unlink(missing_ok=True)
