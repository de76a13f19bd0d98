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
from replenish.lab.data import Dataset, load
from replenish.lab.jobs import Job, WatchJobs, folder_of, plan
from replenish.lab.orders import build_order
from replenish.lab.records import RunFolder

if TYPE_CHECKING:
    from torch import nn

    from replenish.lab.report.document import Section

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
    """

    errors: dict[str, dict[int, float]]
    sentences: tuple[str, ...]
    section: Section
    runs: Path


def compare(
    data: str | os.PathLike[str] | Dataset,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    orders: Sequence[str] = ORDERS,
    seeds: int | Sequence[int] = 5,
    runs: str | os.PathLike[str] = "runs",
    hardware: Hardware | None = None,
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
    dataset, configs = comparison_configs(data, model, orders, recipe)
    jobs = plan(configs, seed_list(seeds), Path(runs), hardware=hardware)
    check_unchanged(jobs, dataset)
    own_model = None if isinstance(model, str) else model

    from replenish.lab.training import train

    for place, job in enumerate(jobs):
        train(
            job.config,
            job.folder,
            hardware=job.hardware,
            model=own_model,
            dataset=dataset,
            watch=partial(watch, place) if watch is not None else None,
        )
    return found_in(runs, configs, seed_list(seeds))


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
    if len(set(orders)) != len(orders) or len(orders) < 2:
        raise ValueError(f"orders should be two or more different orders, but got {', '.join(orders) or 'none'}")
    if isinstance(data, Dataset):
        # The name alone would let other data of that name pass for these.
        dataset, name = data, f"{data.name}@{data.fingerprint[:8]}"
    else:
        name = os.fspath(data)
        dataset = load(name, images_per_class=recipe.get("images_per_class"), image_size=recipe.get("image_size"))
    defaults: dict[str, Any] = {"epochs": EPOCHS, "pad": max(dataset.image_size) // 8, "flip": dataset.name != "digits"}
    if isinstance(model, str):
        model_name = model
        _check_named(model, dataset)
    else:
        model_name = _own_name(model)
    whole = RunConfig(dataset=name, model=model_name, **{**defaults, **recipe})
    plain: dict[str, Any] = {"pool_size": None, "sequence": "shuffled"}  # which only SRS has
    configs = [dataclasses.replace(whole, order=order, **({} if order == "srs" else plain)) for order in orders]
    for config in configs:  # an order that cannot be built is refused before another has been trained
        build_order(config, len(dataset.train_labels))
    return dataset, configs


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds: the first so many, or those given."""
    if isinstance(seeds, int):
        return list(range(checks.integer("seeds", seeds, minimum=1)))
    return [checks.seed(seed) for seed in seeds]


def check_unchanged(jobs: Sequence[Job], dataset: Dataset) -> None:
    """Refuse runs that have ended on other data of the same name.

    Raises:
        ValueError: Naming the first.
    """
    for job in jobs:
        result = RunFolder(job.folder).result() if job.folder.exists() else None
        if result is not None and result["data"]["fingerprint"] != dataset.fingerprint:
            raise ValueError(
                f"{job.folder} holds a run on other data: {dataset.name} has changed since; give another --runs"
            )


def found_in(runs: str | os.PathLike[str], configs: Sequence[RunConfig], seeds: Sequence[int]) -> Comparison:
    """Return what the finished runs of some configs and seeds say.

    Raises:
        ValueError: There are none.
    """
    from replenish.lab.report.grouping import by_recipe
    from replenish.lab.report.reading import read_run
    from replenish.lab.report.samplers import samplers_section

    folders = [folder_of(config.with_seed(seed), Path(runs)) for config in configs for seed in seeds]
    records = [read_run(Path(runs), folder) for folder in folders if folder.exists()]
    if not any(record.status == "finished" for record in records):
        raise ValueError(f"no run in {runs} finished, so there is nothing to compare")
    (samplers,) = by_recipe(records)
    section = samplers_section(samplers, "comparison")
    errors = {group.config.order: group.errors for group in samplers.values()}
    return Comparison(errors, tuple(finding.sentence for finding in section.findings), section, Path(runs))


def _check_named(model: str, dataset: Dataset) -> None:
    """Raise now what would else be raised by the first run."""
    from replenish.lab.models import entry
    from replenish.lab.training import named_model

    entry(model)
    named_model(RunConfig(model=model), dataset)


def _own_name(make: Callable[[], nn.Module]) -> str:
    """Return a name for a user's network that changes when the network does."""
    import torch

    from replenish.lab.training import weights_sha256

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
    if not isinstance(network, torch.nn.Module):
        raise TypeError(f"model should return a torch.nn.Module, but it returned a {type(network).__name__}")
    return f"{type(network).__name__}@{weights_sha256(network)[:8]}"
