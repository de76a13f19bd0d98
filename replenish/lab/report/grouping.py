"""Which runs belong together: the seeds of one config, the configs of one experiment, the samplers of one recipe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from replenish.lab.config import ORDER_NAMES, RunConfig
from replenish.lab.report.document import Origin
from replenish.lab.report.reading import RunRecord, finite


@dataclass(frozen=True)
class Group:
    """The runs of one config, which differ in their seeds alone."""

    label: str
    config: RunConfig
    runs: tuple[RunRecord, ...]

    @property
    def finished(self) -> tuple[RunRecord, ...]:
        """The runs that ended with an error to count."""
        return tuple(run for run in self.runs if run.status == "finished")

    def count(self, status: str) -> int:
        """Return how many runs have a status."""
        return sum(run.status == status for run in self.runs)

    @property
    def errors(self) -> dict[int, float]:
        """Test error at the last epoch, by seed, of the finished runs."""
        return self._by_seed("test_error")

    @property
    def best_errors(self) -> dict[int, float]:
        """The smallest test error of any epoch, by seed, of the finished runs."""
        return self._by_seed("best_test_error")

    def _by_seed(self, name: str) -> dict[int, float]:
        values = {run.config.seed: finite((run.result or {}).get(name)) for run in self.finished}
        return {seed: value for seed, value in values.items() if value is not None}


def without_repeats(runs: Iterable[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """Return every run once, and a sentence on each folder that repeats another.

    Two folders with equal configs are one run: counted twice it would pass for a second seed. One that finished
    goes before one that did not; else the first path.
    """
    kept: dict[RunConfig, RunRecord] = {}
    remarks = []
    for run in sorted(runs, key=lambda run: (run.status != "finished", run.result is None, run.path)):
        first = kept.setdefault(run.config, run)
        if first is run:
            continue
        same = (first.result or {}).get("weights_sha256") == (run.result or {}).get("weights_sha256")
        if run.result is None or first.result is None:
            ended = ""
        else:
            ended = ", with the same weights" if same else ", with other weights: the run was not reproduced"
        remarks.append(f"{run.path} is the same run as {first.path}{ended}")
    return sorted(kept.values(), key=lambda run: (run.path, run.config.seed)), sorted(remarks)


def by_experiment(runs: Sequence[RunRecord], experiments: Mapping[str, RunConfig]) -> dict[str, Group]:
    """Return the groups of the experiments that have runs; one run can serve several.

    Args:
        runs: All runs, each once.
        experiments: A config by the name of its experiment, whatever its seed.
    """
    by_config: dict[RunConfig, list[RunRecord]] = {}
    for run in runs:
        by_config.setdefault(run.config.with_seed(0), []).append(run)
    groups = {}
    for name, config in experiments.items():
        if found := by_config.get(config.with_seed(0)):
            groups[name] = Group(name, config, _by_seed(found))
    return groups


def by_recipe(runs: Sequence[RunRecord]) -> list[dict[str, Group]]:
    """Return, for each recipe, the groups of its samplers, as `ORDER_NAMES` has them: srs, reshuffling, ..."""
    recipes: dict[RunConfig, dict[RunConfig, list[RunRecord]]] = {}
    for run in runs:
        config = run.config.with_seed(0)
        recipe = dataclasses.replace(config, order="srs", pool_size=None, sequence="shuffled")
        recipes.setdefault(recipe, {}).setdefault(config, []).append(run)
    tables = []
    for recipe in sorted(recipes, key=lambda recipe: recipe.slug):
        groups = [Group(sampler_name(config), config, _by_seed(found)) for config, found in recipes[recipe].items()]
        tables.append({group.label: group for group in sorted(groups, key=_place)})
    return tables


def sampler_name(config: RunConfig) -> str:
    """Return a short name of the order, with what is not as in the paper.

    Example:
        >>> sampler_name(RunConfig(order="srs", pool_size=100)), sampler_name(RunConfig(order="reshuffling"))
        ('srs, pool of 100', 'reshuffling')
    """
    parts = [config.order]
    if config.pool_size is not None:
        parts.append(f"pool of {config.pool_size:,}")
    if config.sequence != "shuffled":
        parts.append(f"{config.sequence} sequence")
    return ", ".join(parts)


def origins(groups: Iterable[Group]) -> tuple[Origin, ...]:
    """Return the commands and commits that made the runs of some groups, with how many each made."""
    runs = {run.path: run for group in groups for run in group.runs if run.result is not None}
    counts: dict[tuple[str, str], int] = {}
    for run in runs.values():
        result = run.result or {}
        key = (str(result.get("command") or "unknown"), str(result.get("commit") or "unknown"))
        counts[key] = counts.get(key, 0) + 1
    return tuple(Origin(command, commit, count) for (command, commit), count in sorted(counts.items()))


def _by_seed(runs: Iterable[RunRecord]) -> tuple[RunRecord, ...]:
    return tuple(sorted(runs, key=lambda run: run.config.seed))


def _place(group: Group) -> tuple[int, str]:
    return ORDER_NAMES.index(group.config.order), group.label
