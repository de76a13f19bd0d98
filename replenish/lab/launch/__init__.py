"""Where jobs run: on this machine, on a Slurm cluster. Each launcher is a function in a file.

A run can be given again: it resumes if it was stopped, and does nothing if it has ended. So a launcher starts jobs,
passes on their events, and returns how each ended (`supervise`). The same call resumes a run that was killed, with any
launcher.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from replenish import checks
from replenish.lab.jobs import WatchJobs, Work

__all__ = ["LAUNCHERS", "launch"]

#: The modules here that have a function `run`; each is imported when it is used, since submitit is an extra.
LAUNCHERS = ("local", "slurm")
#: Variables that torchrun, Slurm and the like, or a user, set where this process is one of several.
STARTED_TOGETHER = ("WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")


def launch(
    jobs: Sequence[Work], launcher: str, parallel: int, watch: WatchJobs, deadline: float | None = None
) -> list[dict[str, Any]]:
    """Run jobs by one of `LAUNCHERS`, `parallel` at once, and return their results, in their order.

    At the deadline, by `time.monotonic`, jobs that still run are ended.

    Raises:
        KeyboardInterrupt: Stopped by a signal; the same call resumes.
        ChildProcessError: A run could not be run.
        OutOfTimeError: The deadline is over.
        ValueError: The launcher cannot be used here, or not for these jobs.
    """
    checks.one_of("launcher", launcher, LAUNCHERS)
    if launcher == "local":
        check_machines(jobs)
    return importlib.import_module(f"{__name__}.{launcher}").run(jobs, parallel, watch, deadline)


def check_machines(jobs: Sequence[Work]) -> None:
    """Refuse runs on several machines where no other machine will ever join."""
    several = next((job.hardware.num_nodes for job in jobs if job.hardware.num_nodes > 1), None)
    if several is not None and not any(name in os.environ for name in STARTED_TOGETHER):
        raise ValueError(
            f"num_nodes={several} needs a process on each machine, but this one was started alone; start it with "
            f"torchrun on each, or use the launcher 'slurm'"
        )
