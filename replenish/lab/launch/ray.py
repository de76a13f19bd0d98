"""Runs on a Ray cluster: each a task, started again from its checkpoint if its machine is lost."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replenish.lab.config import Hardware
from replenish.lab.jobs import WatchJobs, Work, job_from
from replenish.lab.launch.progress import forget_progress, tell_progress
from replenish.lab.launch.supervise import SECONDS_FOR_FILES, Task, extra, first_line, supervise
from replenish.lab.stopping import Stopped

#: How often a run is started again when its process or its machine is lost.
RESTARTS = 10
#: How long runs that are asked to stop have to save.
SECONDS_TO_SAVE = 60
SECONDS_TO_ANSWER = 10
#: What processes on other machines have to know of this one's environment.
PASSED_ON = "REPLENISH_"


def run(jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None) -> list[dict[str, Any]]:
    """Run jobs on the Ray cluster that is there, or on one of this machine; each is one process on one machine.

    A run that could not be run does not keep the others from their end. A signal lets all of them save.
    """
    unfinished = [job for job in jobs if job.result() is None]
    if not unfinished:  # Ray takes seconds to start
        return supervise(jobs, parallel, watch, partial(_RayTask, None))
    ray = extra("ray", "ray")
    for job in unfinished:
        if job.hardware.devices * job.hardware.num_nodes > 1:
            raise ValueError(
                f"on Ray each run has one process, but got devices={job.hardware.devices} and "
                f"num_nodes={job.hardware.num_nodes}; use the launcher 'slurm', or torchrun with the launcher 'local'"
            )
        job.claim()
    with connected(ray):
        for place, job in enumerate(jobs):
            if job in unfinished and (missing := want(ray, job.hardware)):
                watch(place, {"event": "warning", "message": missing})
        start = partial(_RayTask, ray)
        return supervise(
            jobs,
            parallel,
            watch,
            start,
            seconds_to_save=SECONDS_TO_SAVE,
            seconds_for_files=SECONDS_FOR_FILES,
            deadline=deadline,
        )


class _RayTask(Task):
    """A task of Ray, by its reference; Ray lets go of what nobody asks for."""

    def __init__(self, ray: Any, job: Work) -> None:
        forget_progress(job)
        task = ray.remote(_execute).options(
            name=f"replenish {job.folder.parent.name} {job.folder.name}",
            max_retries=RESTARTS,
            retry_exceptions=False,  # a run that says why it cannot run will say so again
            **resources(job.hardware),
        )
        values = {**job.to_dict(), "folder": str(job.folder.absolute())}
        self._ray, self._reference = ray, task.remote(values, str(Path.cwd()))

    def over(self) -> bool:
        return bool(self._ray.wait([self._reference], timeout=0)[0])

    def reason(self) -> str:
        try:
            self._ray.get(self._reference)
        except self._ray.exceptions.RayError as error:
            return first_line(str(getattr(error, "cause", None) or error))
        return "its result is not to be seen here; are the runs in a folder that all machines see?"

    def stop(self, number: int) -> None:
        # What Ctrl-C is to a process: the trainer saves.
        self._ray.cancel(self._reference, force=False, recursive=False)


def _execute(values: dict[str, Any], folder: str) -> None:
    """Train in a process of Ray."""
    os.chdir(folder)  # data may have a relative path
    job = job_from(values)
    try:
        job.run(tell_progress(job.folder))
    except Stopped as stopped:
        if stopped.signal_number == signal.SIGTERM:  # the machine is wanted back, and the run has saved
            os._exit(1)  # Ray starts what was lost with its process again, but not what ended with an exception
        raise


def resources(hardware: Hardware) -> dict[str, int]:
    """Return what a run on such hardware asks of Ray."""
    return {"num_cpus": hardware.threads, "num_gpus": int(hardware.accelerator in ("cuda", "gpu"))}


def want(ray: Any, hardware: Hardware) -> str:
    """Return that no machine of the cluster has room for a run; it is no error, since some clusters grow when asked."""
    machines = [machine["Resources"] for machine in ray.nodes() if machine["Alive"]]
    cpus, gpus = resources(hardware).values()
    if any(machine.get("CPU", 0) >= cpus and machine.get("GPU", 0) >= gpus for machine in machines):
        return ""
    return f"no machine of the Ray cluster has {cpus} CPUs and {gpus} GPUs; waiting for one"


@contextmanager
def connected(ray: Any) -> Iterator[None]:
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
    if ":" not in address:  # none, or one of Ray's words for a cluster of this machine
        return
    where = urlsplit(address if "://" in address else f"//{address}")
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise ValueError(f"RAY_ADDRESS should be a Ray cluster that answers, but got {address!r}: {error}") from None
