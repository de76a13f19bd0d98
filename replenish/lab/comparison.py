"""`compare`: the practitioner's question. Does SRS help on these data, with this network?"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish import checks
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.data import Dataset, load, reduce
from replenish.lab.data.augment import MAX_PAD
from replenish.lab.jobs import Job, WatchJobs, plan
from replenish.lab.launch import check_machines, launch
from replenish.lab.runs import RunFolder, folder_of

if TYPE_CHECKING:
    from torch import nn

    from replenish.lab.show import Section

#: What the field uses, what the paper proposes, and what the paper sets it against.
ORDERS = ("reshuffling", "srs", "replacement")
#: The network unless another is named: minutes on a CPU, and batch norm after the addition, as the paper wants.
MODEL = "wrn-10-1"
EPOCHS = 40


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        errors: Test error (in percent, after the last epoch) by order and seed.
        sentences: What the data allow to be said, SRS against each of the others.
        section: The same as a section of a report: tables, curves, sentences.
        runs: Where the runs' folders are.
        diverged: How many runs ended without an error, since their loss was not a number any more.
    """

    errors: dict[str, dict[int, float]]
    sentences: tuple[str, ...]
    section: Section
    runs: Path
    diverged: int = 0


def compare(
    data: str | os.PathLike[str] | Dataset,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    orders: Sequence[str] = ORDERS,
    seeds: int | Sequence[int] = 5,
    runs: str | os.PathLike[str] = "runs",
    hardware: Hardware | None = None,
    launcher: str = "local",
    parallel: int = 1,
    watch: WatchJobs | None = None,
    **recipe: Any,
) -> Comparison:
    """Train one network with several orders over several seeds, and say what the difference is.

    Runs of one seed have the same initial weights, so differences are taken seed by seed. Runs that are finished are
    not run again: more seeds later cost only themselves.

    Args:
        data: A dataset's name, a folder of images, an npz, or a `Dataset`.
        model: A network's name, or a function that makes one of your own with fresh weights.
        orders: Names of orders to compare; see `replenish.lab.config.ORDER_NAMES`.
        seeds: How many (the first so many), or which.
        runs: The folder that the runs' folders are in.
        hardware: What each run is executed on.
        launcher: Where runs are executed: "local", "slurm" or "ray". A network or data of your own are in this
            process, and so are their runs.
        parallel: How many runs at once.
        watch: Told of what happens, for a display.
        **recipe: Any other field of `RunConfig`, such as `epochs`, `batch_size`, `learning_rate`, `image_size`. By
            default 40 effective epochs of the paper's recipe, with crops padded by an eighth of the image.

    Example:
        >>> import tempfile
        >>> from replenish.lab import compare
        >>> with tempfile.TemporaryDirectory() as runs:
        ...     found = compare("digits", seeds=2, epochs=1, orders=("srs", "reshuffling"), runs=runs)
        >>> sorted(found.errors), len(found.sentences)
        (['reshuffling', 'srs'], 1)
    """
    planned = plan_comparison(data, model=model, orders=orders, seeds=seeds, runs=runs, hardware=hardware, **recipe)
    return planned.run(launcher, parallel, watch)


@dataclass(frozen=True)
class PlannedComparison:
    """A comparison that has been checked and not yet run: so that it can be announced.

    Attributes:
        dataset: The data.
        configs: A config for each order.
        jobs: A job for each order and seed.
        runs: The folder that the runs' folders are in.
        make_model: Makes the network, if it has no name.
        own_data: Whether the data is known to this process alone.
    """

    dataset: Dataset
    configs: Sequence[RunConfig]
    jobs: Sequence[Job]
    runs: Path
    make_model: Callable[[], nn.Module] | None
    own_data: bool

    def run(self, launcher: str = "local", parallel: int = 1, watch: WatchJobs | None = None) -> Comparison:
        """Execute what is not finished, and return what was found; the arguments are those of `compare`."""
        here = launcher == "local" and checks.integer("parallel", parallel, minimum=1) == 1
        if here:
            check_machines(self.jobs)
            results = [
                self._train(job, partial(watch, place) if watch else None) for place, job in enumerate(self.jobs)
            ]
        elif self.make_model is not None or self.own_data:
            what = "a network" if self.make_model is not None else "data"
            raise ValueError(
                f"{what} of your own can be trained in this process alone, so launcher should be 'local' and parallel "
                f"1, but got {launcher!r} and {parallel}"
            )
        else:
            results = launch(self.jobs, launcher, parallel, watch or (lambda place, event: None))
        seeds = list(dict.fromkeys(job.config.seed for job in self.jobs))
        diverged = sum(result["status"] == "diverged" for result in results)
        return dataclasses.replace(found_in(self.runs, self.configs, seeds), diverged=diverged)

    def _train(self, job: Job, watch: Callable[[dict[str, Any]], None] | None) -> dict[str, Any]:
        """Train in this process, which has the data already."""
        if self.make_model is None and job.ended() is not None:
            return job.run(watch)  # which tells that it has ended
        from replenish.lab.training import train

        return train(
            job.config,
            job.folder,
            hardware=job.hardware,
            model=self.make_model,
            dataset=self.dataset,
            watch=watch,
            tensorboard=job.tensorboard,
            command=job.command,
        )


def plan_comparison(
    data: str | os.PathLike[str] | Dataset,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    orders: Sequence[str] = ORDERS,
    seeds: int | Sequence[int] = 5,
    runs: str | os.PathLike[str] = "runs",
    hardware: Hardware | None = None,
    tensorboard: bool = False,
    command: str = "",
    **recipe: Any,
) -> PlannedComparison:
    """Return what `compare` is going to run, with the data read and everything checked that can be; nothing is written.

    The arguments are those of `compare`, with `tensorboard` and `command` as of `replenish.lab.jobs.Job`.
    """
    dataset, configs = comparison_configs(data, model, orders, recipe)
    jobs = plan(configs, _seed_list(seeds), Path(runs), hardware=hardware, tensorboard=tensorboard, command=command)
    _check_ended(jobs, dataset)
    make_model = None if isinstance(model, str) else model
    return PlannedComparison(dataset, configs, jobs, Path(runs), make_model, isinstance(data, Dataset))


def comparison_configs(
    data: str | os.PathLike[str] | Dataset,
    model: str | Callable[[], nn.Module],
    orders: Sequence[str],
    recipe: dict[str, Any],
) -> tuple[Dataset, list[RunConfig]]:
    """Return the data, and a config for each order, which differ in nothing else.

    Raises:
        TypeError: A field of `recipe` is not one of `RunConfig`.
        ValueError: Something cannot be compared.
    """
    fields = {field.name for field in dataclasses.fields(RunConfig)} - {"dataset", "model", "order", "seed"}
    if odd := set(recipe) - fields:
        raise TypeError(f"compare takes fields of RunConfig, but got {', '.join(sorted(odd))}")
    if isinstance(orders, str) or len(set(orders)) != len(orders) or len(orders) < 2:
        raise ValueError(f"orders should be two or more different orders, but got {', '.join(orders) or 'none'}")
    model_name = _model_name(model)
    plain: dict[str, Any] = {"pool_size": None, "sequence": "shuffled"}  # which only SRS has

    def configs_of(**fields: Any) -> list[RunConfig]:
        whole = RunConfig(model=model_name, **{"epochs": EPOCHS, **fields, **recipe})
        return [dataclasses.replace(whole, order=order, **({} if order == "srs" else plain)) for order in orders]

    configs_of()  # what is wrong with the recipe is said before data are read
    cut: dict[str, Any] = {name: recipe.get(name) for name in ("images_per_class", "image_size")}
    cut["held_out"] = recipe.get("held_out", False)
    if isinstance(data, Dataset):
        # The name alone would let other data of that name pass for these.
        dataset, name = reduce(data, **cut), f"{data.name}@{data.fingerprint[:8]}"
    else:
        name = os.fspath(data)
        dataset = load(name, **cut)
    if isinstance(model, str):
        _check_fits(model, dataset)
    pad = min(max(dataset.image_size) // 8, MAX_PAD)
    configs = configs_of(dataset=name, pad=pad, flip=dataset.name != "digits")
    images, size = len(dataset.train_labels), configs[0].batch_size
    if images % size and not configs[0].drop_last:
        raise ValueError(
            f"drop_last should be True where batch_size={size} does not divide the {images} images, since some orders "
            f"would end every epoch on a batch of {images % size} and others not, but got False"
        )
    for config in configs:  # an order that cannot be built is refused before another has been trained
        config.build_order(len(dataset.train_labels), dataset.train_labels)
    return dataset, configs


def _seed_list(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds: the first so many, or those given."""
    if isinstance(seeds, int):
        return list(range(checks.integer("seeds", seeds, minimum=1)))
    return [checks.seed(seed) for seed in seeds]


def _check_ended(jobs: Sequence[Job], dataset: Dataset) -> None:
    """Refuse runs that have ended on other data of the same name, or were executed otherwise than is asked for now.

    Raises:
        ValueError: Naming the first.
    """
    for job in jobs:
        result = RunFolder(job.folder).result() if job.folder.exists() else None
        if result is None:
            continue
        if result["data"]["fingerprint"] != dataset.fingerprint:
            raise ValueError(
                f"{job.folder} holds a run on other data: {dataset.name} has changed since; keep those runs apart"
            )
        # Batch norm sees a process's share alone, and other kernels round otherwise: such runs are no pair.
        asked = {**job.hardware.to_dict(), "processes": job.hardware.devices * job.hardware.num_nodes}
        for name in ("processes", "threads", "compile"):
            if (used := result["hardware"].get(name, asked[name])) != asked[name]:
                raise ValueError(
                    f"{job.folder} holds a run with {name}={used}, but {asked[name]} is asked for now; keep those "
                    f"runs apart"
                )


def found_in(runs: str | os.PathLike[str], configs: Sequence[RunConfig], seeds: Sequence[int]) -> Comparison:
    """Return what the finished runs of some configs and seeds say.

    Raises:
        ValueError: There are none.
    """
    from replenish.lab.report import by_recipe, orders_section
    from replenish.lab.runs import read_run

    folders = [folder_of(config.with_seed(seed), Path(runs)) for config in configs for seed in seeds]
    records = [read_run(Path(runs), folder) for folder in folders if folder.exists()]
    if not any(record.status == "finished" for record in records):
        raise ValueError(f"no run in {runs} finished, so there is nothing to compare")
    (samplers,) = by_recipe(records)
    section = orders_section(samplers, "comparison")
    errors = {group.config.order: group.errors for group in samplers.values()}
    return Comparison(errors, tuple(finding.sentence for finding in section.findings), section, Path(runs))


def _check_fits(model: str, dataset: Dataset) -> None:
    """Raise now what would else be raised by the first run."""
    from replenish.lab.training import named_model

    named_model(RunConfig(model=model), dataset)


def _model_name(model: str | Callable[[], nn.Module]) -> str:
    """Return a network's name; for a user's own, one that changes when the network does."""
    if isinstance(model, str):
        from replenish.lab.models import entry

        entry(model)  # raises if there is none
        return model
    import torch

    if isinstance(model, torch.nn.Module) or not callable(model):
        got = "a network itself" if isinstance(model, torch.nn.Module) else repr(model)
        raise TypeError(
            f"model should be a network's name or make a network, as a class or a function does, but got {got}; every "
            f"run needs fresh weights"
        )
    from replenish.lab.models.identity import network_name

    return network_name(model)
