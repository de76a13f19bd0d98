"""Where jobs run: on this machine, on a Slurm cluster, on a Ray cluster. Each launcher is a function in a file.

A launcher takes jobs and returns how each ended, in their order. A run that was killed is gone on with by the same
command, whichever launcher it is given to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.launchers.local import run_locally

__all__ = ["LAUNCHERS", "launch"]


def _slurm(jobs: Sequence[Job], parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    from replenish.lab.launchers.slurm import run_on_slurm  # submitit is an extra

    return run_on_slurm(jobs, parallel, watch)


def _ray(jobs: Sequence[Job], parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    from replenish.lab.launchers.ray import run_on_ray  # Ray is an extra

    return run_on_ray(jobs, parallel, watch)


Launcher = Callable[[Sequence[Job], int, WatchJobs], list[dict[str, Any]]]
LAUNCHERS: dict[str, Launcher] = {"local": run_locally, "slurm": _slurm, "ray": _ray}


def launch(jobs: Sequence[Job], launcher: str, parallel: int, watch: WatchJobs) -> list[dict[str, Any]]:
    """Run jobs and return their results, in their order.

    Args:
        jobs: What to run.
        launcher: One of `LAUNCHERS`.
        parallel: How many at once.
        watch: Told of what happens.
    """
    if launcher not in LAUNCHERS:
        raise ValueError(f"--launcher should be one of {', '.join(LAUNCHERS)}, but got {launcher!r}")
    return LAUNCHERS[launcher](jobs, parallel, watch)
