"""Where the runs of a command are executed: threads of this process that wait for them, jobs of Slurm, tasks of Ray."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from replenish import checks
from replenish.lab.comparing.command_run import CommandRun, StoppedError
from replenish.lab.comparing.metric import Metric
from replenish.lab.config import Hardware
from replenish.lab.launch import LAUNCHERS
from replenish.lab.launch.ray import connected, resources, want
from replenish.lab.launch.slurm import LOGS, executor_of, refusals
from replenish.lab.launch.supervise import SECONDS_FOR_FILES, extra

SECONDS_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True)
class Started:
    """A run that is executed somewhere: whether it still is; how it ended, raised if it has not finished; its end."""

    done: Callable[[], Any]
    result: Callable[[], None]
    stop: Callable[[], Any]


Start = Callable[[CommandRun], Started]


@contextmanager
def starting(
    launcher: str,
    metric: Metric,
    parallel: int,
    home: Path,
    *,
    needs: Hardware | None = None,
    tell: Callable[[str], None] | None = None,
    cluster: str = "slurm",
) -> Iterator[Start]:
    """Give what starts runs, whose folders are in `home`, which all machines see.

    A cluster is asked for what each run `needs`; if it has no such machine, that is told, and waited for. With
    `cluster="local"` they are submitit's processes on this machine in the place of Slurm's jobs.
    """
    checks.one_of("launcher", launcher, LAUNCHERS)
    hardware = Hardware() if needs is None else needs
    if launcher == "slurm":
        executor = executor_of((home / LOGS).absolute(), hardware, parallel, cluster)

        def submit(run: CommandRun) -> Started:
            with refusals():
                job = executor.submit(_execute, run, metric, str(Path.cwd()))
            return Started(job.done, partial(_answered, run, job.result), partial(_cancel, job))

        yield submit
    elif launcher == "ray":
        ray = extra("ray", "ray")
        with connected(ray):
            # A run that was lost with its machine is run again by the next call: it may have written anything.
            task = ray.remote(_execute).options(max_retries=0, **resources(hardware))
            if tell is not None and (missing := want(ray, hardware)):
                tell(missing)

            def ask(run: CommandRun) -> Started:
                reference = task.remote(run, metric, str(Path.cwd()))
                return Started(
                    lambda: ray.wait([reference], timeout=0)[0],
                    partial(_answered, run, partial(ray.get, reference)),
                    partial(ray.cancel, reference, force=False, recursive=False),
                )

            yield ask
    else:
        with ThreadPoolExecutor(parallel) as pool:

            def wait(run: CommandRun) -> Started:
                stop = threading.Event()
                future = pool.submit(run.execute, metric, stop)
                return Started(future.done, future.result, stop.set)

            yield wait


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


def _answered(run: CommandRun, answer: Callable[[], tuple[str, str] | None]) -> None:
    """Return if a run in another process has finished; its folder may take a while to be seen here."""
    try:
        fault = answer()
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise ChildProcessError(
            f"the run of {run.order} with seed {run.seed} was lost: {reason[-1] if reason else error!r}"
        ) from None
    if fault is not None:
        raise (ChildProcessError if fault[0] == "failed" else ValueError)(fault[1])
    until = time.monotonic() + SECONDS_FOR_FILES
    while run.outcome() is None and time.monotonic() < until:
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _cancel(job: Any) -> None:
    job.cancel()
    if not isinstance(job, extra("submitit", "slurm").SlurmJob):
        job.wait()  # a process of this machine should not outlive the call


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
