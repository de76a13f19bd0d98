"""Running jobs on this machine: one after the other in this process, or several at once, each in its own process.

Jobs can be run again: a stopped run resumes, and a run that has ended is not repeated. So the same call continues what
a kill or a signal stopped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from replenish.lab.jobs import WatchJobs, Work
from replenish.lab.launch.processes import run_in_processes
from replenish.lab.stopping import check_deadline

__all__ = ["launch"]

#: Variables that torchrun, Slurm, similar programs or users set if this process is one of several.
STARTED_TOGETHER = ("WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")


def launch(
    jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None
) -> list[dict[str, Any]]:
    """Run jobs, `parallel` at once, and return their results in the order of the jobs.

    If a job cannot be run, the others save and stop. The same happens at the deadline, a time of `time.monotonic`.

    Raises:
        KeyboardInterrupt: A signal stopped the runs, which have saved; the same call resumes them.
        ChildProcessError: A run in a process of its own could not be run.
        OutOfTimeError: The deadline has passed.
        ValueError: A run needs several machines, but this process was started alone.
    """
    _check_machines(jobs)
    if parallel == 1:
        # In this process, so that torchrun, srun and Fabric can start several of it.
        return [job.run(partial(_watch_one, watch, deadline, place)) for place, job in enumerate(jobs)]
    return run_in_processes(jobs, parallel, watch, deadline)


def _watch_one(watch: WatchJobs, deadline: float | None, place: int, event: dict[str, Any]) -> None:
    if event["event"] != "end":
        check_deadline(deadline)
    if event["event"] != "beat":
        watch(place, event)


def _check_machines(jobs: Sequence[Work]) -> None:
    """Refuse runs on several machines if no other machine can join."""
    several = next((job.hardware.num_nodes for job in jobs if job.hardware.num_nodes > 1), None)
    if several is not None and not any(name in os.environ for name in STARTED_TOGETHER):
        raise ValueError(
            f"num_nodes={several} needs a process on each machine, but this one was started alone; start it with "
            f"torchrun on each"
        )
