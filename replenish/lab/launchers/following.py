"""Following runs that other machines execute: by their folders, which all machines see.

A run's process writes where it is to `.progress.json` (`tell_progress`); whoever waits reads that file and the metrics,
and hears the same events as from a run of its own (`Following`).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.records import METRICS, RunFolder
from replenish.lab.whole_files import write_whole

PROGRESS = ".progress.json"
#: Steps are reported often by a run; a shared file system need not carry them all.
SECONDS_BETWEEN_REPORTS = 1.0
SECONDS_BETWEEN_LOOKS = 0.5


def tell_progress(folder: Path) -> Callable[[dict[str, Any]], None]:
    """Return what to give `Job.run` as its watch, so that others can follow the run.

    Args:
        folder: The run's folder.
    """
    path = folder / PROGRESS
    told: dict[str, Any] = {"attempt": f"{os.getpid()}-{time.time_ns()}", "warnings": [], "start": None, "step": None}
    reported = 0.0

    def tell(event: dict[str, Any]) -> None:
        nonlocal reported
        kind = event["event"]
        # Progress is not worth a run: if it cannot be written, the run goes on.
        with contextlib.suppress(OSError):
            if kind == "warning":
                told["warnings"].append(event)
            elif kind == "start" or (kind == "step" and time.monotonic() - reported > SECONDS_BETWEEN_REPORTS):
                told[kind] = event
                write_whole(path, json.dumps(told).encode())
                reported = time.monotonic()

    return tell


class Following:
    """What is known of runs that are under way elsewhere, told to a watch as it becomes known.

    A run that has ended is known by its result. One that fails does not stop the others: `results` raises when all
    have ended.

    Args:
        jobs: All jobs, finished ones too.
        watch: Told of "start", "step", "epoch", "warning", "stopped", "end" and "error".

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from replenish.lab.config import RunConfig
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = Job(RunConfig(), Path(folder))
        ...     RunFolder(folder).write_result({"status": "finished"})
        ...     following = Following([job], lambda place, event: print(place, event["event"]))
        0 end
        >>> following.results()
        [{'status': 'finished'}]
    """

    def __init__(self, jobs: Sequence[Job], watch: WatchJobs) -> None:
        self._jobs, self._watch = jobs, watch
        self._results: dict[int, dict[str, Any]] = {}
        self._failures: dict[int, str] = {}
        self._attempts: dict[int, str] = {}
        self._steps: dict[int, Mapping[str, Any]] = {}
        # The epochs of an earlier call are no news.
        self._epochs = {place: len(self._metrics(place)) for place in range(len(jobs))}
        #: The places of the jobs that had not ended when this was made.
        self.unfinished = [place for place in range(len(jobs)) if not self._ended(place)]

    def look(self, place: int) -> bool:
        """Tell what is new of a run, and return whether it has ended."""
        if place in self._results:
            return True
        try:
            result = RunFolder(self._jobs[place].folder).result()  # first: what the run wrote before is then seen too
            progress, metrics = self._progress(place), self._metrics(place)
        except OSError:  # another machine has just replaced a file: at the next look, then
            return False
        if progress is not None:
            self._tell_start(place, progress)
        if place in self._attempts:
            for line in metrics[self._epochs[place] :]:
                self._watch(place, {"event": "epoch", **line})
            self._epochs[place] = len(metrics)
        if progress is not None and progress["step"] not in (None, self._steps.get(place)):
            self._steps[place] = progress["step"]
            self._watch(place, progress["step"])
        if result is not None:
            forget_progress(self._jobs[place].folder)
            self._end(place, result)
        return result is not None

    def fail(self, place: int, reason: str) -> None:
        """Note that a run has ended without a result."""
        self._failures[place] = f"the run in {self._jobs[place].folder} could not be run: {reason}"
        self._watch(place, {"event": "error", "message": self._failures[place]})

    def results(self) -> list[dict[str, Any]]:
        """Return how all runs ended.

        Raises:
            ChildProcessError: A run ended without a result; the sentence is on the first such run.
        """
        if self._failures:
            first = self._failures[min(self._failures)]
            others = len(self._failures) - 1
            raise ChildProcessError(first + (f" (and so for {others} others)" if others else ""))
        return [self._results[place] for place in range(len(self._jobs))]

    def _ended(self, place: int) -> bool:
        result = RunFolder(self._jobs[place].folder).result()
        if result is not None:
            self._end(place, result)
        return result is not None

    def _end(self, place: int, result: dict[str, Any]) -> None:
        self._results[place] = result
        self._watch(place, {"event": "end", "result": result})

    def _tell_start(self, place: int, progress: Mapping[str, Any]) -> None:
        if progress["attempt"] == self._attempts.get(place):
            return
        if place in self._attempts:
            self._watch(place, {"event": "stopped", "message": "was stopped, and has been started again"})
        self._attempts[place] = progress["attempt"]
        for event in (*progress["warnings"], progress["start"]):
            self._watch(place, event)

    def _progress(self, place: int) -> dict[str, Any] | None:
        try:
            return json.loads((self._jobs[place].folder / PROGRESS).read_text())
        except FileNotFoundError:
            return None

    def _metrics(self, place: int) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in (self._jobs[place].folder / METRICS).read_text().splitlines()]
        except FileNotFoundError:
            return []


def forget_progress(folder: Path) -> None:
    """Remove what an earlier process told of a run that is about to be started again."""
    (folder / PROGRESS).unlink(missing_ok=True)


def first_line(text: str) -> str:
    """Return the first line of a message that may have many."""
    return text.strip().partition("\n")[0]
