"""Runs on this machine: one after the other in this process, or several at once, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.records import RunFolder


def run_locally(jobs: Sequence[Job], parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    """Run jobs here, `parallel` at once.

    Raises:
        KeyboardInterrupt: Stopped by a signal; every run has saved where it stands.
        ChildProcessError: A run could not be run; the others have saved where they stand.
    """
    if parallel == 1:
        # In this process, so that `torchrun` and Fabric can make several of it.
        return [job.run(partial(watch, place)) for place, job in enumerate(jobs)]
    return _Processes(jobs, watch).run(parallel)


class _Processes:
    """Workers of `replenish.lab.launchers.worker`, whose events come as lines of JSON."""

    def __init__(self, jobs: Sequence[Job], watch: WatchJobs) -> None:
        self._jobs, self._watch = jobs, watch
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopping = 0

    def run(self, parallel: int) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(parallel) as threads:
            futures = [threads.submit(self._one, place) for place in range(len(self._jobs))]
            try:
                with terminating_like_interrupting():
                    wait(futures, return_when=FIRST_EXCEPTION)
            except KeyboardInterrupt:
                self._stop(futures, signal.SIGINT)
                raise KeyboardInterrupt(
                    "stopped; every run has saved where it stands, so give the same command again"
                ) from None
            # If one cannot run, the others save where they stand.
            failed = next((future for future in futures if future.done() and future.exception()), None)
            if failed is not None:
                self._stop(futures, signal.SIGTERM)
            return [future.result() for future in ([failed] if failed else futures)]

    def _stop(self, futures: list[Future[dict[str, Any]]], number: int) -> None:
        with self._lock:
            self._stopping = number
            for process in self._running:
                process.send_signal(number)
        for future in futures:
            future.cancel()
        wait([future for future in futures if not future.cancelled()])

    def _one(self, place: int) -> dict[str, Any]:
        job = self._jobs[place]
        if (result := RunFolder(job.folder).result()) is not None:
            self._watch(place, {"event": "end", "result": result})
            return result
        environment = {**os.environ, "OMP_NUM_THREADS": str(job.hardware.threads)}
        with self._lock:
            if self._stopping:
                raise KeyboardInterrupt
            # A session of its own: Ctrl-C reaches the worker once, from here, not a second time from the terminal.
            process = subprocess.Popen(
                [sys.executable, "-m", "replenish.lab.launchers.worker", json.dumps(job.to_dict())],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
        complaints: list[str] = []
        with process:  # closes the pipes
            drain = threading.Thread(target=lambda: complaints.extend(process.stderr or ()), daemon=True)
            drain.start()
            assert process.stdout is not None
            for line in process.stdout:
                event = _event(line)
                if event["event"] == "end":
                    result = event["result"]
                if event["event"] == "error":
                    complaints = [event["message"]]
                if event["event"] != "none":
                    self._watch(place, event)
            process.wait()
            drain.join()
        with self._lock:
            self._running.discard(process)
        if result is None:
            last = complaints[-1].strip() if complaints else f"it ended with exit code {process.returncode}"
            raise ChildProcessError(f"the run in {job.folder} could not be run: {last}")
        return result


def _event(line: str) -> dict[str, Any]:
    """Return a worker's event; what a library printed is none."""
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        event = None
    return event if isinstance(event, dict) and "event" in event else {"event": "none"}


@contextmanager
def terminating_like_interrupting() -> Iterator[None]:
    """Let SIGTERM, which clusters send, raise what Ctrl-C raises."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
