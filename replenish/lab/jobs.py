"""A job: one run with all that is needed to execute it anywhere, as plain values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from replenish import checks
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.runs import RunFolder, folder_of

@dataclass(frozen=True)
class Execution:
    """Where runs are executed and how.

    Attributes:
        runs: The folder of the runs' folders.
        launcher: "local", "slurm" or "ray".
        parallel: How many runs at once.
        hardware: The hardware of each run.
        budget: Seconds for all runs together; None for no limit.
        tensorboard: Whether runs also write TensorBoard events.
        command: The command as it was typed, for the records.
    """

    runs: Path = Path("runs")
    launcher: str = "local"
    parallel: int = 1
    hardware: Hardware = field(default_factory=Hardware)
    budget: float | None = None
    tensorboard: bool = False
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", Path(self.runs))
        checks.integer("parallel", self.parallel, minimum=1)
        object.__setattr__(self, "budget", checked_budget(self.budget))


#: Told of a job's events (see `replenish.lab.training.Watch`) with the job's place in the list.
WatchJobs = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Job:
    """One run: what to run, where and on what; whether with TensorBoard events; the command, for the record."""

    config: RunConfig
    folder: Path
    hardware: Hardware = field(default_factory=Hardware)
    tensorboard: bool = False
    command: str = ""

    def run(self, watch: Callable[[dict[str, Any]], None] | None = None, **own: Any) -> dict[str, Any]:
        """Train here and now, and return the result; `own` are a network and data, as `train` takes them."""
        if (result := self.ended()) is not None:
            if watch is not None:
                watch({"event": "end", "result": result})
            return result
        from replenish.lab.training import train  # torch takes seconds, and planning needs none of it

        return train(
            self.config,
            self.folder,
            hardware=self.hardware,
            watch=watch,
            tensorboard=self.tensorboard,
            command=self.command,
            **own,
        )

    def ended(self) -> dict[str, Any] | None:
        """Return how the run ended if it has: so neither data nor torch is needed for what is finished.

        None for a run of several processes too: they have to find it out together.
        """
        if self.hardware.devices * self.hardware.num_nodes > 1:
            return None
        folder = RunFolder(self.folder)
        folder.check(self.config)
        return folder.result()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "config": self.config.to_dict(), "folder": str(self.folder)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        """Return the job that `to_dict` wrote."""
        config, folder = RunConfig.from_dict(values["config"]), Path(values["folder"])
        return cls(**{**values, "config": config, "folder": folder, "hardware": Hardware(**values["hardware"])})


def checked_budget(budget: object) -> float | None:
    """Return a budget in seconds, or raise if it is not a positive number; None for none."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"budget should be a number of seconds, but got {budget!r}")
    if not (math.isfinite(budget) and budget > 0):
        raise ValueError(f"budget should be above 0 seconds, but got {budget!r}")
    return float(budget)


def plan(
    configs: Iterable[RunConfig],
    seeds: Sequence[int],
    runs_dir: str | Path,
    *,
    hardware: Hardware | None = None,
    tensorboard: bool = False,
    command: str = "",
) -> list[Job]:
    """Return a job for every config and seed, equal ones once, all configs of a seed before the next seed.

    So what is there after half of the time is half of the seeds of every row: already a comparison.

    Raises:
        ValueError: A run's folder is of another config.
    """
    distinct = dict.fromkeys(configs)
    seeded = [config.with_seed(seed) for seed in seeds for config in distinct]
    jobs = [Job(config, folder_of(config, runs_dir), hardware or Hardware(), tensorboard, command) for config in seeded]
    for job in jobs:
        RunFolder(job.folder).check(job.config)
    return jobs
