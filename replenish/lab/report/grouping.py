"""Which runs belong together: the seeds of one config, the configs of one experiment, the orders of one recipe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replenish.lab.config import ORDER_NAMES, RunConfig
from replenish.lab.runs import RunRecord


@dataclass(frozen=True)
class Group:
    """The runs of one config, which differ only in their seeds."""

    label: str
    config: RunConfig
    runs: tuple[RunRecord, ...]

    @property
    def finished(self) -> tuple[RunRecord, ...]:
        """The runs that ended with a test error."""
        return tuple(run for run in self.runs if run.status == "finished")

    def count(self, status: str) -> int:
        """Return how many runs have a status."""
        return sum(run.status == status for run in self.runs)

    @property
    def errors(self) -> dict[int, float]:
        """Test error at the last epoch, by seed, of the finished runs."""
        return self.by_seed("test_error")

    def by_seed(self, name: str) -> dict[int, float]:
        """Return a number of the results, such as `best_test_error`, by seed, of the finished runs that have it."""
        values = {run.config.seed: run.number(name) for run in self.finished}
        return {seed: value for seed, value in values.items() if value is not None}


def without_repeats(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """Return every run once, and a sentence on each folder that repeats another.

    Two folders with equal configs hold the same run, which must not count as two seeds. Finished runs are preferred to
    others, and then the first path.
    """
    kept: dict[RunConfig, RunRecord] = {}
    remarks = []
    for run in sorted(runs, key=lambda run: (run.status != "finished", run.result is None, run.path)):
        first = kept.setdefault(run.config, run)
        if first is run:
            continue
        same = first.field("weights_sha256") == run.field("weights_sha256")
        if run.result is None or first.result is None:
            ended = ""
        else:
            ended = ", with the same weights" if same else ", with other weights: the run was not reproduced"
        remarks.append(f"{run.path} is the same run as {first.path}{ended}")
    return sorted(kept.values(), key=lambda run: (run.path, run.config.seed)), sorted(remarks)


def by_experiment(runs: Sequence[RunRecord], experiments: Mapping[str, RunConfig]) -> dict[str, Group]:
    """Return the runs of each experiment that has any, by name; a run can belong to several."""
    by_config: dict[RunConfig, list[RunRecord]] = {}
    for run in runs:
        by_config.setdefault(run.config.with_seed(0), []).append(run)
    groups = {}
    for name, config in experiments.items():
        plain = config.with_seed(0)
        # The first records have epochs that end on a short batch. They count only if there are no others.
        for made in (plain, dataclasses.replace(plain, drop_last=False)):
            if made in by_config:
                groups[name] = Group(name, made, _by_seed(by_config[made]))
                break
    return groups


def by_recipe(runs: Sequence[RunRecord]) -> list[dict[str, Group]]:
    """Return the runs of each recipe by order, sorted as `ORDER_NAMES`."""
    recipes: dict[RunConfig, dict[RunConfig, list[RunRecord]]] = {}
    for run in runs:
        config = run.config.with_seed(0)
        recipe = dataclasses.replace(config, order="srs", pool_size=None, sequence="shuffled")
        recipes.setdefault(recipe, {}).setdefault(config, []).append(run)
    tables = []
    for recipe in sorted(recipes, key=lambda recipe: recipe.slug):
        groups = [Group(order_name(config), config, _by_seed(found)) for config, found in recipes[recipe].items()]
        groups.sort(key=lambda group: (ORDER_NAMES.index(group.config.order), group.label))
        tables.append({group.label: group for group in groups})
    return tables


def order_name(config: RunConfig) -> str:
    """Return a short name of the order, with the options that differ from the paper's.

    Example:
        >>> order_name(RunConfig(order="srs", pool_size=100)), order_name(RunConfig(order="reshuffling"))
        ('srs, pool of 100', 'reshuffling')
    """
    parts = [config.order]
    if config.pool_size is not None:
        parts.append(f"pool of {config.pool_size:,}")
    if config.sequence != "shuffled":
        parts.append(f"{config.sequence} sequence")
    return ", ".join(parts)


def execution_differences(first: Group, second: Group) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which runs with equal seeds were executed differently, each with its two values."""
    found: dict[str, tuple[Any, Any]] = {}
    others = {run.config.seed: run for run in second.finished}
    for run in first.finished:
        if run.config.seed not in others:
            continue
        one, two = _execution(run), _execution(others[run.config.seed])
        for name in one.keys() & two.keys():
            if one[name] != two[name]:
                found.setdefault(name, (one[name], two[name]))
    return dict(sorted(found.items()))


def _execution(run: RunRecord) -> dict[str, Any]:
    """Return the recorded settings of a run's execution that can change its result."""
    hardware, versions = run.field("hardware") or {}, run.field("versions") or {}
    names = ("processes", "device", "threads", "compile", "precision")
    found = {name: hardware[name] for name in names if name in hardware}
    if "torch" in versions:
        found["torch"] = versions["torch"]
    if initial := run.field("initial_sha256"):
        found["initial weights"] = initial[:8]
    samples = (run.field("data") or {}).get("train_images", 0)
    found["short batches"] = bool(not run.config.drop_last and samples % run.config.batch_size)
    return found


def _by_seed(runs: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    return tuple(sorted(runs, key=lambda run: run.config.seed))
