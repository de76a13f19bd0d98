"""Runs on a Ray cluster: each a task, started again from its checkpoint if its machine is lost."""

from __future__ import annotations

import dataclasses
import importlib
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replenish.lab.config import Hardware
from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.launchers.following import (
    SECONDS_BETWEEN_LOOKS,
    Following,
    first_line,
    forget_progress,
    tell_progress,
)
from replenish.lab.launchers.local import terminating_like_interrupting
from replenish.lab.records import RunFolder

#: How often a run is started again when its process or its machine is lost.
RESTARTS = 10
#: How long runs that are asked to stop have to save.
SECONDS_TO_SAVE = 60
SECONDS_TO_ANSWER = 10
#: What processes on other machines have to know of this one's environment.
PASSED_ON = "REPLENISH_"


def run_on_ray(jobs: Sequence[Job], parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    """Run jobs on the Ray cluster that is there, or on one of this machine, `parallel` at once.

    Args:
        jobs: What to run, each on one machine. Their folders have to be on a file system that all machines see.
        parallel: How many at once, if the cluster has room for them.
        watch: Told of what happens.

    Raises:
        KeyboardInterrupt: Stopped by a signal; every run has saved where it stands.
        ChildProcessError: A run could not be run; the others have been run to their end.
        ValueError: Ray is not installed or does not answer, or a run is to have several processes.
    """
    following = Following(jobs, watch)
    if not following.unfinished:
        return following.results()
    ray = _ray()
    for place in following.unfinished:
        _check_one_process(jobs[place].hardware)
        RunFolder(jobs[place].folder).claim(jobs[place].config)
    with _connected(ray):
        _warn_of_want(ray, jobs, following.unfinished, watch)
        _Tasks(ray, jobs, following).run(parallel)
    return following.results()


class _Tasks:
    """Ray's tasks of the jobs that are under way."""

    def __init__(self, ray: Any, jobs: Sequence[Job], following: Following) -> None:
        self._ray, self._jobs, self._following = ray, jobs, following
        self._running: dict[Any, int] = {}

    def run(self, parallel: int) -> None:
        left = list(reversed(self._following.unfinished))
        try:
            with terminating_like_interrupting():
                while left or self._running:
                    while left and len(self._running) < parallel:
                        self._start(left.pop())
                    self._look()
        except KeyboardInterrupt:
            self._stop()
            raise KeyboardInterrupt(
                "stopped; every run has saved where it stands, so give the same command again"
            ) from None

    def _start(self, place: int) -> None:
        job = self._jobs[place]
        forget_progress(job.folder)
        task = self._ray.remote(_execute).options(
            name=f"replenish {job.folder.parent.name} {job.folder.name}",
            max_retries=RESTARTS,
            retry_exceptions=False,  # a run that says why it cannot run will say so again
            **_resources(job.hardware),
        )
        job = dataclasses.replace(job, folder=job.folder.absolute())
        self._running[task.remote(job.to_dict(), str(Path.cwd()))] = place

    def _look(self) -> None:
        ended, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=SECONDS_BETWEEN_LOOKS)
        for task, place in list(self._running.items()):
            if task not in ended:
                self._following.look(place)
                continue
            del self._running[task]
            try:
                self._ray.get(task)
            except self._ray.exceptions.RayError as error:
                self._following.fail(place, first_line(str(getattr(error, "cause", None) or error)))
            else:
                self._following.look(place)

    def _stop(self) -> None:
        for task in self._running:
            self._ray.cancel(task, force=False, recursive=False)  # what Ctrl-C is to a process: the trainer saves
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=SECONDS_TO_SAVE)


def _execute(values: dict[str, Any], folder: str) -> None:
    """Train in a process of Ray."""
    os.chdir(folder)  # data may have a relative path
    job = Job.from_dict(values)
    from replenish.lab.training import Stopped

    try:
        job.run(tell_progress(job.folder))
    except Stopped as stopped:
        if stopped.signal_number == signal.SIGTERM:  # the machine is wanted back, and the run has saved
            os._exit(1)  # Ray starts what was lost with its process again, but not what ended with an exception
        raise


def _check_one_process(hardware: Hardware) -> None:
    if hardware.devices * hardware.num_nodes > 1:
        raise ValueError(
            f"--launcher ray gives each run one process, but got devices={hardware.devices} and "
            f"num_nodes={hardware.num_nodes}; use --launcher slurm, or torchrun with --launcher local"
        )


def _resources(hardware: Hardware) -> dict[str, int]:
    return {"num_cpus": hardware.threads, "num_gpus": int(hardware.accelerator in ("cuda", "gpu"))}


def _warn_of_want(ray: Any, jobs: Sequence[Job], places: Sequence[int], watch: WatchJobs) -> None:
    """Say which runs no machine of the cluster has room for; it is no error, since some clusters grow when asked."""
    machines = [machine["Resources"] for machine in ray.nodes() if machine["Alive"]]
    for place in places:
        cpus, gpus = _resources(jobs[place].hardware).values()
        if not any(machine.get("CPU", 0) >= cpus and machine.get("GPU", 0) >= gpus for machine in machines):
            message = f"no machine of the Ray cluster has {cpus} CPUs and {gpus} GPUs; waiting for one"
            watch(place, {"event": "warning", "message": message})


@contextmanager
def _connected(ray: Any) -> Iterator[None]:
    """Be connected to the cluster that there is, or to one of this machine that is started for it."""
    if ray.is_initialized():  # by the program that this is part of
        yield
        return
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    if passed_on := {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}:
        options["runtime_env"] = {"env_vars": passed_on}
    _check_that_it_answers(os.environ.get("RAY_ADDRESS", ""))
    # Not address="auto": that takes any cluster on this machine, also one that another program has for itself.
    ray.init(**options)
    try:
        yield
    finally:
        ray.shutdown()


def _check_that_it_answers(address: str) -> None:
    """Refuse an address that nobody listens at; Ray itself would try again for a quarter of an hour."""
    where = urlsplit(address if "://" in address else f"//{address}")
    if ":" not in address:  # none, or one of Ray's words for a cluster of this machine
        return
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise ValueError(f"RAY_ADDRESS should be a Ray cluster that answers, but got {address!r}: {error}") from None


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ValueError("Ray is not installed: pip install 'replenish[ray]'") from None
