"""Runs on this machine: one after the other in this process, or several at once, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any

from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.launch.progress import forget_progress
from replenish.lab.launch.supervise import Task, supervise


def run(jobs: Sequence[Job], parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    """Run jobs here, `parallel` at once; if one cannot be run, the others save where they stand."""
    if parallel == 1:
        # In this process, so that `torchrun` and Fabric can make several of it.
        return [job.run(partial(watch, place)) for place, job in enumerate(jobs)]
    return supervise(jobs, parallel, watch, _Process, stop_at_failure=True)


class _Process(Task):
    """A process of `replenish.lab.launch.worker`."""

    def __init__(self, job: Job) -> None:
        forget_progress(job)
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would have to be read all the time
        # A session of its own: Ctrl-C reaches the worker once, from here, not a second time from the terminal.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "replenish.lab.launch.worker", json.dumps(job.to_dict())],
            env={**os.environ, "OMP_NUM_THREADS": str(job.hardware.threads)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            start_new_session=True,
        )

    def over(self) -> bool:
        return self._process.poll() is not None

    def reason(self) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        self.finish()
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else f"it ended with exit code {self._process.returncode}"

    def stop(self, number: int) -> None:
        self._process.send_signal(number)

    def finish(self) -> None:
        self._process.wait()
        self._complaints.close()
