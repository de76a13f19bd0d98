"""Runs on a Ray cluster: each is a task, and restarts from its checkpoint if its machine is lost."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from replenish.lab.config import Hardware
from replenish.lab.jobs import WatchJobs, Work, job_from
from replenish.lab.launch.supervise import (
    SECONDS_FOR_FILES,
    Task,
    extra,
    first_line,
    forget_progress,
    progress_writer,
    supervise,
)
from replenish.lab.stopping import Stopped

#: How often a run is restarted when its process or its machine is lost.
RESTARTS = 10
#: How long a run has for saving when it is asked to stop.
SECONDS_TO_SAVE = 60
SECONDS_TO_ANSWER = 10
#: Variables whose names begin so are passed on to the processes on other machines.
PASSED_ON = "REPLENISH_"


def run(jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None) -> list[dict[str, Any]]:
    """Run jobs on the Ray cluster of this environment, or on one made of this machine; each is a single process.

    A run that could not be run does not stop the others. A signal lets all of them save.
    """
    unfinished = [job for job in jobs if job.result() is None]
    if not unfinished:  # Ray takes seconds to start
        return supervise(jobs, parallel, watch, partial(_RayTask, None))
    for job in unfinished:
        if job.hardware.devices * job.hardware.num_nodes > 1:
            raise ValueError(
                f"on Ray each run has one process, but got devices={job.hardware.devices} and "
                f"num_nodes={job.hardware.num_nodes}; use the launcher 'slurm', or torchrun with the launcher 'local'"
            )
    ray = extra("ray", "ray")
    for job in unfinished:
        job.claim()
    with connected(ray):
        for place, job in enumerate(jobs):
            if job in unfinished:
                _warn_of_small_machines(ray, job.hardware, partial(watch, place))
        return supervise(
            jobs,
            parallel,
            watch,
            partial(_RayTask, ray),
            seconds_to_save=SECONDS_TO_SAVE,
            seconds_for_files=SECONDS_FOR_FILES,
            deadline=deadline,
        )


class _RayTask(Task):
    """A task of Ray."""

    def __init__(self, ray: Any, job: Work) -> None:
        forget_progress(job)
        task = ray.remote(_execute).options(
            name=f"replenish {job.folder.parent.name} {job.folder.name}",
            max_retries=RESTARTS,
            retry_exceptions=False,  # the same run would fail the same way again
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
        return "its result is not visible here; are the runs in a folder that all machines see?"

    def stop(self, number: int) -> None:
        # Like Ctrl-C: the trainer saves.
        self._ray.cancel(self._reference, force=False, recursive=False)


def _execute(values: dict[str, Any], folder: str) -> None:
    """Train in a process of Ray."""
    os.chdir(folder)  # data may have a relative path
    job = job_from(values)
    try:
        job.run(progress_writer(job.folder))
    except Stopped as stopped:
        if stopped.signal_number == signal.SIGTERM:  # the machine is about to go, and the run has saved
            os._exit(1)  # Ray restarts a task whose process was lost, but not one that raised
        raise


def resources(hardware: Hardware) -> dict[str, int]:
    """Return what a run on such hardware requests from Ray."""
    return {"num_cpus": hardware.threads, "num_gpus": int(hardware.accelerator in ("cuda", "gpu"))}


def _warn_of_small_machines(ray: Any, hardware: Hardware, watch: Callable[[dict[str, Any]], None]) -> None:
    """Warn if no machine of the cluster has room for a run. It is not an error: some clusters grow on demand."""
    cpus, gpus = resources(hardware).values()
    machines = [machine["Resources"] for machine in ray.nodes() if machine["Alive"]]
    if not any(machine.get("CPU", 0) >= cpus and machine.get("GPU", 0) >= gpus for machine in machines):
        message = f"no machine of the Ray cluster has {cpus} CPUs and {gpus} GPUs; waiting for one"
        watch({"event": "warning", "message": message})


@contextmanager
def connected(ray: Any) -> Iterator[None]:
    """Connect to the cluster of this environment, or to one that is started on this machine."""
    if ray.is_initialized():  # by the program that calls this
        yield
        return
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    if passed_on := {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}:
        options["runtime_env"] = {"env_vars": passed_on}
    _check_that_it_answers(os.environ.get("RAY_ADDRESS", ""))
    # Not address="auto": that would take any cluster on this machine, also another program's.
    ray.init(**options)
    try:
        yield
    finally:
        ray.shutdown()


def _check_that_it_answers(address: str) -> None:
    """Refuse an address that does not answer; Ray itself would retry for a quarter of an hour."""
    if ":" not in address:  # no address, or one of Ray's words for a cluster of this machine
        return
    where = urlsplit(address if "://" in address else f"//{address}")
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise ValueError(f"RAY_ADDRESS should be a Ray cluster that answers, but got {address!r}: {error}") from None
