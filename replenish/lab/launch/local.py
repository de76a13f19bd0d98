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

from replenish.lab.jobs import WatchJobs, Work
from replenish.lab.launch.progress import forget_progress
from replenish.lab.launch.supervise import Task, check_deadline, supervise


def run(jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None) -> list[dict[str, Any]]:
    """Run jobs here, `parallel` at once; if one cannot be run, the others save where they stand."""
    if parallel == 1:
        # In this process, so that `torchrun` and Fabric can make several of it.
        return [job.run(partial(_in_time, watch, deadline, place)) for place, job in enumerate(jobs)]
    start = partial(_Process, gpus=Gpus(visible_gpus(jobs)))
    return supervise(jobs, parallel, watch, start, stop_at_failure=True, deadline=deadline)


def _in_time(watch: WatchJobs, deadline: float | None, place: int, event: dict[str, Any]) -> None:
    """Pass an event on, unless the time is over."""
    if event["event"] != "end":
        check_deadline(deadline)
    if event["event"] != "beat":
        watch(place, event)


def visible_gpus(jobs: Sequence[Work]) -> list[str]:
    """Return the GPUs that processes started here can see, as CUDA_VISIBLE_DEVICES names them."""
    if all(job.hardware.accelerator in ("cpu", "mps") for job in jobs):
        return []
    if chosen := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return chosen.split(",")
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


class Gpus:
    """Which GPUs the runs under way use: each new run gets those with the fewest runs.

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
        """Return the GPUs for a run that needs `count`; none where there are none."""
        chosen = sorted(self._runs, key=self._runs.__getitem__)[:count]
        for name in chosen:
            self._runs[name] += 1
        return chosen

    def release(self, names: Sequence[str]) -> None:
        """Take back the GPUs of a run that has ended."""
        for name in names:
            self._runs[name] -= 1


class _Process(Task):
    """A process of `replenish.lab.launch.worker`, which sees only the GPUs that it was given."""

    def __init__(self, job: Work, gpus: Gpus) -> None:
        forget_progress(job)
        self._gpus, self._own_gpus = gpus, gpus.take(job.hardware.devices)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(self._own_gpus)} if self._own_gpus else {}
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would have to be read all the time
        # A session of its own: Ctrl-C reaches the worker once, from here, not a second time from the terminal.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "replenish.lab.launch.worker", json.dumps(job.to_dict())],
            env={**os.environ, **visible, **job.environment()},
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
        self._gpus.release(self._own_gpus)
