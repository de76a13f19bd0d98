"""The ended runs of a part by arm, and the format of numbers on the study's page."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from replenish.lab.config import RunConfig
from replenish.lab.runs import RunRecord, read_runs
from replenish.lab.show.table import NOTHING
from replenish.lab.statistics import mean_with_interval
from study.second.arms import PARTS
from study.second.rules import Judgement, Values

#: A diverged run counts with the error and the log-loss of guessing among 100 classes.
GUESSING = {"test_error": 99.0} | dict.fromkeys(("test_loss", "clean_loss", "train_loss"), math.log(100))


class PartRecords:
    """The ended runs of a part of the study.

    Attributes:
        name: The part's name, such as `K`.
        arms: The runs of each arm, in the order of their seeds.
    """

    def __init__(self, name: str, runs: Iterable[RunRecord]) -> None:
        found: dict[RunConfig, list[RunRecord]] = defaultdict(list)
        for run in sorted(runs, key=lambda run: run.config.seed):
            if run.result is not None:
                found[run.config.with_seed(0)].append(run)
        self.name = name
        self.arms = {arm: found[config.with_seed(0)] for arm, config in PARTS[name].arms.items()}

    @classmethod
    def read(cls, name: str, folder: Path) -> PartRecords:
        """Return the part's runs in the folder of the study's records."""
        path = folder / name
        return cls(name, read_runs(path) if path.is_dir() else [])

    @property
    def complete(self) -> bool:
        """Whether the last run has ended. Until then nothing is judged."""
        return all(len(runs) == PARTS[self.name].seeds for runs in self.arms.values())

    @property
    def waiting(self) -> str:
        """A sentence: how many of the runs have ended."""
        stated, ended = len(self.arms) * PARTS[self.name].seeds, sum(map(len, self.arms.values()))
        return f"{ended} of the {stated} runs of part {self.name} have ended. Nothing is judged before the last one."

    def final(self, quantity: str) -> Values:
        """Return a quantity after the last epoch, by arm."""
        return {arm: [kept(run, quantity, run.number(quantity)) for run in runs] for arm, runs in self.arms.items()}

    def diverged(self, arm: str) -> int:
        """Return how many runs of an arm diverged."""
        return sum(run.status == "diverged" for run in self.arms[arm])

    @property
    def origin(self) -> str:
        """A sentence: the number of runs, their time, and the commands and commits that made them."""
        ended = [run for runs in self.arms.values() for run in runs]
        commands, commits = (sorted({f"`{run.field(name)}`" for run in ended}) for name in ("command", "commit"))
        times = [str(run.field(name))[:16].replace("T", " ") for run in ended for name in ("started_at", "ended_at")]
        hours = sum(run.number("seconds") or 0.0 for run in ended) / 3600
        return (
            f"{len(ended)} runs, {hours:.1f} hours of wall-clock time in all, from {min(times)} to {max(times)} UTC; "
            f"{', '.join(commands)} at commit {', '.join(commits)}."
        )


def kept(run: RunRecord, quantity: str, value: float | None) -> float:
    """Return the value, or the value of guessing if the run diverged."""
    if value is None and run.status != "diverged":
        raise ValueError(f"{run.path} should have a {quantity} after its last epoch, but has none; run it again")
    return GUESSING[quantity] if value is None else value


def effect(judged: Judgement, digits: int = 3, *, with_n: bool = True) -> str:
    """Return a mean difference with its interval, and n unless the text around it has that."""
    low, high = judged.interval
    n = f", n = {judged.n}" if with_n else ""
    return f"{signed(judged.mean, digits)} ({signed(low, digits)} to {signed(high, digits)}{n})"


def mean(values: Sequence[float], digits: int) -> str:
    """Return the mean of an arm's values with its interval."""
    found = mean_with_interval(values)
    assert found.interval is not None
    return f"{found.value:.{digits}f} ({found.interval.low:.{digits}f} to {found.interval.high:.{digits}f})"


def signed(value: float, digits: int = 3) -> str:
    """Return a difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def p_text(value: float | None) -> str:
    """Return a p-value with three decimals, or with one digit if it is smaller; a dash for None."""
    if value is None:
        return NOTHING
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"
