"""Where the runs of a command are executed: threads of this process that wait for them, jobs of Slurm, tasks of Ray."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from replenish.lab.command_metric import Metric
from replenish.lab.command_run import CommandRun, StoppedError
from replenish.lab.config import Hardware
from replenish.lab.launch import LAUNCHERS
from replenish.lab.launch.ray import connected
from replenish.lab.launch.slurm import LOGS, executor_of
from replenish.lab.launch.supervise import SECONDS_FOR_FILES, extra

SECONDS_BETWEEN_LOOKS = 0.05


class Started(Protocol):
    """A run that is executed somewhere."""

    def done(self) -> bool:
        """Return whether it is not executed any more."""

    def result(self) -> None:
        """Return if it has finished; else raise why it has not."""

    def stop(self) -> None:
        """Ask it to end."""


Start = Callable[[CommandRun], Started]


@contextmanager
def starting(launcher: str, metric: Metric, parallel: int, home: Path, *, cluster: str = "slurm") -> Iterator[Start]:
    """Give what starts runs.

    Args:
        launcher: One of `LAUNCHERS`.
        metric: How a run's number is found.
        parallel: How many are started at once.
        home: The folder of the command's runs, which all machines see.
        cluster: "local" for submitit's processes on this machine in the place of Slurm's jobs.
    """
    if launcher not in LAUNCHERS:
        raise ValueError(f"launcher should be one of {', '.join(LAUNCHERS)}, but got {launcher!r}")
    if launcher == "slurm":
        executor = executor_of((home / LOGS).absolute(), Hardware(), parallel, cluster)
        yield lambda run: _Elsewhere(run, _SlurmJob(executor.submit(_execute, run, metric, str(Path.cwd()))))
    elif launcher == "ray":
        ray = extra("ray", "ray")
        with connected(ray):
            # A run that was lost with its machine is run again by the next call: it may have written anything.
            task = ray.remote(_execute).options(max_retries=0, num_cpus=1)
            yield lambda run: _Elsewhere(run, _RayTask(ray, task.remote(run, metric, str(Path.cwd()))))
    else:
        with ThreadPoolExecutor(parallel) as pool:
            yield lambda run: _Thread(pool, run, metric)


def run_all(
    runs: list[CommandRun], start: Start, parallel: int, deadline: float | None, ended: Callable[[CommandRun], None]
) -> None:
    """Execute runs, so many at once, and tell of each that has finished; if one fails, the others are stopped.

    Raises:
        StoppedError: The time was over.
    """
    left, running = list(runs), dict[CommandRun, Started]()
    try:
        while left or running:
            while left and len(running) < parallel:
                run = left.pop(0)
                running[run] = start(run)
            for run in [run for run, started in running.items() if started.done()]:
                running.pop(run).result()
                ended(run)
            if deadline is not None and time.monotonic() > deadline and (left or running):
                raise StoppedError("the budget was spent")
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except BaseException:
        for started in running.values():
            started.stop()  # they are run again by the next call
        raise


class _Thread:
    """A thread of this process, which waits for the command."""

    def __init__(self, pool: ThreadPoolExecutor, run: CommandRun, metric: Metric) -> None:
        self._stop = threading.Event()
        self._future: Future[None] = pool.submit(run.execute, metric, self._stop)

    def done(self) -> bool:
        return self._future.done()

    def result(self) -> None:
        self._future.result()

    def stop(self) -> None:
        self._stop.set()


class _Elsewhere:
    """A run in another process, which says how it ended; its folder may take a while to be seen here."""

    def __init__(self, run: CommandRun, job: _SlurmJob | _RayTask) -> None:
        self._run, self._job = run, job

    def done(self) -> bool:
        return self._job.done()

    def result(self) -> None:
        try:
            fault = self._job.answer()
        except Exception as error:
            reason = str(error).strip().splitlines()
            raise ChildProcessError(
                f"the run of {self._run.order} with seed {self._run.seed} was lost: {reason[-1] if reason else error!r}"
            ) from None
        if fault is not None:
            raise (ChildProcessError if fault[0] == "failed" else ValueError)(fault[1])
        until = time.monotonic() + SECONDS_FOR_FILES
        while self._run.outcome() is None and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def stop(self) -> None:
        self._job.stop()


class _SlurmJob:
    def __init__(self, job: Any) -> None:
        self._job = job

    def done(self) -> bool:
        return bool(self._job.done())

    def answer(self) -> tuple[str, str] | None:
        found: tuple[str, str] | None = self._job.result()
        return found

    def stop(self) -> None:
        self._job.cancel()
        if not isinstance(self._job, extra("submitit", "slurm").SlurmJob):
            self._job.wait()  # a process of this machine should not outlive the call


class _RayTask:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def done(self) -> bool:
        return bool(self._ray.wait([self._reference], timeout=0)[0])

    def answer(self) -> tuple[str, str] | None:
        found: tuple[str, str] | None = self._ray.get(self._reference)
        return found

    def stop(self) -> None:
        self._ray.cancel(self._reference, force=False, recursive=False)


def _execute(run: CommandRun, metric: Metric, folder: str) -> tuple[str, str] | None:
    """Run a command in a process of a cluster, and return what is wrong with it, if anything is."""
    os.chdir(folder)
    try:
        run.execute(metric, threading.Event())
    except ChildProcessError as error:
        return "failed", str(error)
    except (ValueError, OSError) as error:
        return "wrong", str(error)
    return None
