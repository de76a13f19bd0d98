"""A job: one run with all that is needed to execute it anywhere, as plain values."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
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


class Record(Protocol):
    """What reads the folder of a run."""

    def result(self) -> dict[str, Any] | None:
        """Return how the run ended, or None if it has not."""

    def metrics(self) -> tuple[dict[str, Any], ...]:
        """Return a line for each effective epoch that has ended."""


class Work(Protocol):
    """What a launcher executes: a training of the lab (`Job`), or a command of the user's."""

    @property
    def folder(self) -> Path:
        """Where it is recorded; all machines see it."""

    @property
    def hardware(self) -> Hardware:
        """What it needs."""

    @property
    def record(self) -> Record:
        """What reads the folder."""

    def run(self, watch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Execute it here and now, and return how it ended."""

    def claim(self) -> None:
        """Make the folder."""

    def environment(self) -> dict[str, str]:
        """Return what its process needs in its environment."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; "module" names the module whose `job_from` reads them."""


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

    @property
    def record(self) -> RunFolder:
        """The folder, to read how the run goes."""
        return RunFolder(self.folder)

    def claim(self) -> None:
        """Make the folder, or refuse one that another config has."""
        self.record.claim(self.config)

    def environment(self) -> dict[str, str]:
        """Return what a process of the run needs in its environment: libraries read it when they are loaded."""
        return {"OMP_NUM_THREADS": str(self.hardware.threads)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the module that makes the job of them again."""
        return {"module": __name__, **asdict(self), "config": self.config.to_dict(), "folder": str(self.folder)}


def job_from(values: Mapping[str, Any]) -> Work:
    """Return the job that `to_dict` wrote."""
    fields = dict(values)
    module = fields.pop("module")
    if module != __name__:
        made: Work = importlib.import_module(module).job_from(fields)
        return made
    config, folder = RunConfig.from_dict(fields["config"]), Path(fields["folder"])
    return Job(**{**fields, "config": config, "folder": folder, "hardware": Hardware(**fields["hardware"])})


def checked_budget(budget: object) -> float | None:
    """Return a budget in seconds, or raise if it is not a positive number; None for none."""
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, Real):
        raise TypeError(f"budget should be a number of seconds, but got {budget!r}")
    number = float(budget)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"budget should be above 0 seconds, but got {budget!r}")
    return number


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
