"""A job: one run, and all that another process needs to execute it, as plain values."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from replenish import checks
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.runs import RunFolder, folder_of


@dataclass(frozen=True)
class Execution:
    """Where runs are executed and how.

    Attributes:
        runs: The folder of the runs' folders.
        parallel: How many runs at once.
        hardware: The hardware of each run.
        budget: Seconds for all runs together; None for no limit.
        tensorboard: Whether runs also write TensorBoard events.
        command: The command as it was typed, for the records.
    """

    runs: Path = Path("runs")
    parallel: int = 1
    hardware: Hardware = field(default_factory=Hardware)
    budget: float | None = None
    tensorboard: bool = False
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", Path(self.runs))
        checks.integer("parallel", self.parallel, minimum=1)
        if self.budget is not None:
            checks.real("budget", self.budget, positive=True)


#: Called with a job's place in the list and an event of the job (see `replenish.lab.training.Watch`).
WatchJobs = Callable[[int, dict[str, Any]], None]


class Work(Protocol):
    """What `launch` runs: a training of the lab (`Job`), or a command of the user's (`CommandJob`)."""

    @property
    def folder(self) -> Path:
        """The folder of its record."""

    @property
    def hardware(self) -> Hardware:
        """The hardware that it needs."""

    def run(self, watch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Execute it here and now, and return how it ended."""

    def result(self) -> dict[str, Any] | None:
        """Return how it ended, or None if it has not."""

    def environment(self) -> dict[str, str]:
        """Return variables for the environment of its process."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `module` is the module whose `job_from` reads them."""


@dataclass(frozen=True)
class Job:
    """One run of the lab's training.

    Attributes:
        config: The config of the run.
        folder: Its folder.
        hardware: Its hardware.
        tensorboard: Whether it also writes TensorBoard events.
        command: The command as it was typed, for the record.
        own: A network and data that exist in this process only, as arguments of `train`. `to_dict` leaves them out.
    """

    config: RunConfig
    folder: Path
    hardware: Hardware = field(default_factory=Hardware)
    tensorboard: bool = False
    command: str = ""
    own: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def run(self, watch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Train here and now, and return the result."""
        if (result := self.ended()) is not None:
            if watch is not None:
                watch({"event": "end", "result": result})
            return result
        from replenish.lab.training import train  # torch takes seconds, and planning does not need it

        return train(
            self.config,
            self.folder,
            hardware=self.hardware,
            watch=watch,
            tensorboard=self.tensorboard,
            command=self.command,
            **self.own,
        )

    def ended(self) -> dict[str, Any] | None:
        """Return how the run ended, or None if it has not; this needs neither the data nor torch.

        For a run of several processes it returns None, since they have to read the result together.
        """
        if self.hardware.devices * self.hardware.num_nodes > 1:
            return None
        RunFolder(self.folder).check(self.config)
        return self.result()

    def result(self) -> dict[str, Any] | None:
        """Return how the run ended, or None if it has not."""
        return RunFolder(self.folder).result()

    def environment(self) -> dict[str, str]:
        """Return the number of threads as a variable, which libraries read when they are loaded."""
        return {"OMP_NUM_THREADS": str(self.hardware.threads)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `job_from` makes the job again."""
        plain = {name: getattr(self, name) for name in ("tensorboard", "command")}
        values = {"config": self.config.to_dict(), "folder": str(self.folder), "hardware": self.hardware.to_dict()}
        return {"module": __name__, **values, **plain}


def job_from(values: Mapping[str, Any]) -> Work:
    """Return the job that `to_dict` wrote."""
    fields = dict(values)
    module = fields.pop("module")
    if module != __name__:
        made: Work = importlib.import_module(module).job_from(fields)
        return made
    config, folder = RunConfig.from_dict(fields["config"]), Path(fields["folder"])
    return Job(**{**fields, "config": config, "folder": folder, "hardware": Hardware(**fields["hardware"])})


def plan(
    configs: Iterable[RunConfig],
    seeds: Sequence[int],
    runs_dir: str | Path,
    *,
    hardware: Hardware | None = None,
    tensorboard: bool = False,
    command: str = "",
    own: Mapping[str, Any] | None = None,
) -> list[Job]:
    """Return a job for every different config and every seed, with all configs of a seed before the next seed.

    So after half of the time there is a comparison, with half of the seeds of every row.

    Raises:
        ValueError: A run's folder belongs to another config.
    """
    distinct = dict.fromkeys(configs)
    seeded = [config.with_seed(seed) for seed in seeds for config in distinct]
    details = (hardware or Hardware(), tensorboard, command, own or {})
    jobs = [Job(config, folder_of(config, runs_dir), *details) for config in seeded]
    for job in jobs:
        RunFolder(job.folder).check(job.config)
    return jobs
