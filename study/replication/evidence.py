"""The study's records by arm. Runs of one comparison must have been executed alike. Diverged runs are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from replenish.lab.experiments.costs import known_data
from replenish.lab.runs import RunRecord
from replenish.lab.statistics import Difference, paired_difference
from study.replication.plan import ARMS, LEARNT, Arm

#: The error on the test images, or on the training images that were not used.
Reading = Literal["test_error", "held_out_error"]
#: Entries of a result that must be equal in all runs of one comparison.
_ALIKE = ("machine", "hardware", "versions", "steps")
#: Entries that must also be equal in the two runs of a pair.
_PAIRED = ("initial_sha256", "data")


@dataclass(frozen=True)
class ArmRuns:
    """The runs of an arm that have ended, by seed."""

    arm: Arm
    runs: Mapping[int, RunRecord]

    @property
    def diverged(self) -> tuple[int, ...]:
        """The seeds whose runs diverged."""
        return tuple(seed for seed, run in self.runs.items() if run.status == "diverged")

    def errors(self, reading: Reading = "test_error") -> dict[int, float]:
        """Return the error by seed, in percent. A diverged run counts with the error of guessing."""
        guessing = 100 * (1 - 1 / known_data(self.arm.config).classes)
        return {
            seed: guessing if run.status == "diverged" else self._number(run, reading)
            for seed, run in self.runs.items()
        }

    def not_learnt(self) -> list[str]:
        """Return the paths of the runs that should have memorised their training images, but did not."""
        runs = self.runs.values() if self.arm.must_learn else ()
        return [run.path for run in runs if run.status == "diverged" or self._number(run, "clean_error") > LEARNT]

    def _number(self, run: RunRecord, name: str) -> float:
        value = run.number(name)
        if value is None:
            raise ValueError(f"{run.path} should have a number {name!r} in its result, but has none")
        return value


@dataclass(frozen=True)
class Evidence:
    """All arms of the study with the runs that have ended.

    Attributes:
        arms: By name, in the order of the plan.
        left_out: Paths of runs of an arm's config with seeds that were not stated, such as pilots.
    """

    arms: Mapping[str, ArmRuns]
    left_out: tuple[str, ...] = ()

    def check_alike(self, names: Sequence[str]) -> None:
        """Raise if runs of one comparison differ in machine, hardware, versions or steps, or changed their hardware."""
        runs = [run for name in names for run in self.arms[name].runs.values()]
        for run in runs:
            for earlier in run.field("earlier_hardware") or []:
                _same("hardware", (run.path, earlier), (run.path, run.field("hardware")))
            for what in _ALIKE:
                # A diverged run stops early, so its steps differ.
                if what != "steps" or "diverged" not in (run.status, runs[0].status):
                    _same(what, *((each.path, _recorded(each, what)) for each in (runs[0], run)))

    def difference(self, first: str, second: str, seeds: int, reading: Reading) -> Difference:
        """Return first minus second for every seed below `seeds` that has ended in both.

        Raises:
            ValueError: Two runs of a seed differ in their initial weights or their data.
        """
        one, two = self.arms[first], self.arms[second]
        both = [seed for seed in range(seeds) if seed in one.runs and seed in two.runs]
        for seed in both:
            for what in _PAIRED:
                _same(what, *((each.path, each.field(what)) for each in (one.runs[seed], two.runs[seed])))
        errors = ({seed: arm.errors(reading)[seed] for seed in both} for arm in (one, two))
        return paired_difference(*errors)


def read_evidence(runs: Iterable[RunRecord], arms: Mapping[str, Arm] = ARMS) -> Evidence:
    """Return the study's runs by arm. Other runs, and runs that have not ended, are ignored.

    Raises:
        ValueError: There are two records of the same run.
    """
    by_config = {arm.config: arm.name for arm in arms.values()}
    found: dict[str, dict[int, RunRecord]] = {name: {} for name in arms}
    left_out = []
    for run in sorted(runs, key=lambda run: run.config.seed):
        name = by_config.get(run.config.with_seed(0))
        if name is None or run.result is None:
            continue
        seed = run.config.seed
        if seed >= arms[name].seeds:
            left_out.append(run.path)
        elif seed in found[name]:
            raise ValueError(f"{run.path} and {found[name][seed].path} are the same run; remove one of them")
        else:
            found[name][seed] = run
    return Evidence({name: ArmRuns(arm, found[name]) for name, arm in arms.items()}, tuple(left_out))


def _recorded(run: RunRecord, what: str) -> Any:
    """Return an entry of a result. Versions come without replenish's own, since the commit identifies our code."""
    value = run.field(what)
    if what == "versions" and value:
        return {name: version for name, version in value.items() if name != "replenish"}
    return value


def _same(what: str, first: tuple[str, Any], second: tuple[str, Any]) -> None:
    if first[1] != second[1]:
        raise ValueError(
            f"runs of one comparison should be alike, but {what} is {first[1]!r} in {first[0]} and {second[1]!r} in "
            f"{second[0]}; run one of them again"
        )
