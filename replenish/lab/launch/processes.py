"""Several runs at once, each in its own process, which reports the run's events through a pipe."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from replenish.lab.jobs import WatchJobs, Work
from replenish.lab.stopping import Stopped, check_deadline, handling, raise_stopped

SECONDS_BETWEEN_LOOKS = 0.2
#: Not longer, since a process that the run started, and that is still running, may keep the run's pipe open.
SECONDS_FOR_LAST_EVENTS = 1.0


def run_in_processes(
    jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None
) -> list[dict[str, Any]]:
    """Run the jobs that have not ended, `parallel` at once, and return all results; see `launch`."""
    runs = _Runs(jobs, watch)
    try:
        with handling(raise_stopped, signal.SIGTERM):
            while runs.left or runs.processes:
                runs.fill(parallel)
                time.sleep(SECONDS_BETWEEN_LOOKS)
                runs.look()
                check_deadline(deadline)
                if runs.failures:
                    runs.stop(signal.SIGTERM)
    except KeyboardInterrupt as asked:
        number = getattr(asked, "signal_number", signal.SIGINT)
        runs.stop(number)
        message = "stopped; every run has saved, so give the same command again to resume"
        raise Stopped(message, number) from None
    except Exception:  # the runs must not continue without a process that follows them
        runs.stop(signal.SIGTERM)
        raise
    if failures := runs.failures:
        others = f" (and so for {len(failures) - 1} others)" if len(failures) > 1 else ""
        raise ChildProcessError(failures[min(failures)] + others)
    return [result for result in runs.results if result is not None]


class _Runs:
    """The jobs of one call, which are waiting, running, ended or failed."""

    def __init__(self, jobs: Sequence[Work], watch: WatchJobs) -> None:
        self._jobs, self._watch = jobs, watch
        self._gpus = Gpus(visible_gpus(jobs))
        self.results = [job.result() for job in jobs]
        for place, result in enumerate(self.results):
            if result is not None:
                watch(place, {"event": "end", "result": result})
        self.left = [place for place in reversed(range(len(jobs))) if self.results[place] is None]
        self.processes: dict[int, _Process] = {}
        self.failures: dict[int, str] = {}

    def fill(self, parallel: int) -> None:
        """Start jobs until `parallel` of them run."""
        while self.left and len(self.processes) < parallel:
            place = self.left.pop()
            self.processes[place] = _Process(self._jobs[place], self._gpus)

    def look(self) -> None:
        """Pass on new events, and remove the processes that have ended."""
        for place, process in list(self.processes.items()):
            over, reason = process.over(), ""
            if over:
                del self.processes[place]
                reason = process.finish()
            self._pass_on(place, process)
            if over and self.results[place] is None:
                self.failures[place] = f"the run in {self._jobs[place].folder} could not be run: {reason}"
                self._watch(place, {"event": "error", "message": self.failures[place]})

    def stop(self, number: int) -> None:
        """Ask every process to save and end, and wait until all have ended; start no others."""
        self.left.clear()
        for process in self.processes.values():
            process.stop(number)
        for process in self.processes.values():
            process.finish()
        while self.processes:
            self._pass_on(*self.processes.popitem())

    def _pass_on(self, place: int, process: _Process) -> None:
        for event in process.events():
            if event["event"] == "end":
                self.results[place] = event["result"]
            self._watch(place, event)


class _Process:
    """The process of one run. It sees only its share of the GPUs."""

    def __init__(self, job: Work, gpus: Gpus) -> None:
        self._gpus, self._own_gpus = gpus, gpus.take(job.hardware.devices)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(self._own_gpus)} if self._own_gpus else {}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by finish
        # In a new session, so that Ctrl-C reaches the process once, from here, and not a second time from the terminal.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "replenish.lab.launch.worker", json.dumps(job.to_dict())],
            env={**os.environ, **visible, **job.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):  # a killed process may leave half a line
                    self._events.put(json.loads(line))

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events since the last call."""
        while not self._events.empty():
            yield self._events.get()

    def over(self) -> bool:
        """Return whether the process has ended, with or without a result."""
        return self._process.poll() is not None

    def stop(self, number: int) -> None:
        """Ask the process to save and end, by this signal."""
        self._process.send_signal(number)

    def finish(self) -> str:
        """Wait until the process has ended, and return the last line of its standard error, or its exit code."""
        self._process.wait()
        self._reader.join(SECONDS_FOR_LAST_EVENTS)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().split("\n")
        self._errors.close()
        self._gpus.release(self._own_gpus)
        return lines[-1].strip() or f"it ended with exit code {self._process.returncode}"


def visible_gpus(jobs: Sequence[Work]) -> list[str]:
    """Return the GPUs that processes started here can see, as CUDA_VISIBLE_DEVICES names them."""
    if all(job.hardware.accelerator in ("cpu", "mps") for job in jobs):
        return []
    if chosen := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return chosen.split(",")
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


class Gpus:
    """Shares the GPUs among the runs: each new run gets those with the fewest runs.

    Example:
        >>> gpus = Gpus(["0", "1"])
        >>> [gpus.take(1) for _ in range(3)]
        [['0'], ['1'], ['0']]
        >>> gpus.release(["1"])
        >>> gpus.take(1)
        ['1']
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._runs = dict.fromkeys(names, 0)

    def take(self, count: int) -> list[str]:
        """Return the GPUs for a run that needs `count`; an empty list on a machine without GPUs."""
        chosen = sorted(self._runs, key=self._runs.__getitem__)[:count]
        for name in chosen:
            self._runs[name] += 1
        return chosen

    def release(self, names: Sequence[str]) -> None:
        """Take back the GPUs of a run that has ended."""
        for name in names:
            self._runs[name] -= 1
