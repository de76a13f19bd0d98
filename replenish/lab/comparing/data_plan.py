"""What a comparison will run: the data, a config for each order, and all checks before the first run."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from replenish.lab.config import RunConfig
from replenish.lab.data import Dataset, as_dataset, load, reduce
from replenish.lab.data.augment import MAX_PAD
from replenish.lab.jobs import Job
from replenish.lab.report.findings import execution_text
from replenish.lab.report.grouping import Group

if TYPE_CHECKING:
    from torch import nn

#: The usual order, the paper's order, and the one that the paper compares it with.
ORDERS = ("reshuffling", "srs", "replacement")
#: The default network trains in minutes on a CPU, and has batch norm after the addition, as in the paper.
MODEL = "wrn-10-1"
EPOCHS = 40
#: With fewer test images one image is more than half a point.
FEW_TEST_IMAGES = 200
#: A network has learnt next to nothing if its error is above this share of the error of guessing.
UNTRAINED = 0.9
#: With fewer wrong images the orders have nothing left to differ in.
FEW_WRONG_IMAGES = 3


def comparison_configs(
    data: Any, model: str | Callable[[], nn.Module], orders: Sequence[str], recipe: Mapping[str, Any]
) -> tuple[Dataset, list[RunConfig]]:
    """Return the data, and a config for each order. They differ in the order, and where `recipe` says so.

    The arguments are those of `replenish.lab.compare`. A field of `recipe` can be a mapping from orders to values.

    Raises:
        TypeError: A field of `recipe` is not one of `RunConfig`.
        ValueError: Something cannot be compared.
    """
    fields = {field.name for field in dataclasses.fields(RunConfig)} - {"dataset", "model", "order", "seed"}
    if odd := set(recipe) - fields:
        raise TypeError(f"compare takes fields of RunConfig, but got {', '.join(sorted(odd))}")
    plain: dict[str, Any] = {"pool_size": None, "sequence": "shuffled"}  # for orders other than SRS

    def config_of(order: str, fields: Mapping[str, Any]) -> RunConfig:
        own = {**fields, **_of_order(recipe, order, orders)}
        own = own if order == "srs" else {**own, **plain}
        epochs = own.pop("epochs", EPOCHS)
        # The clean loss is measured once, at the end. The online loss depends on the order even at equal weights.
        return RunConfig(order=order, epochs=epochs, **{"clean_every": epochs, **own})

    # A wrong recipe fails before torch is loaded and data are read.
    _refuse_without_effect(recipe, [config_of(order, {}) for order in orders])
    name = _model_name(model)
    dataset, data_name = _read(data, recipe)
    pad = min(max(dataset.image_size) // 8, MAX_PAD)
    known: dict[str, Any] = {"dataset": data_name, "pad": pad, "flip": dataset.name != "digits", "model": name}
    configs = [config_of(order, known) for order in orders]
    if isinstance(model, str):
        configs = [_with_network(config, dataset) for config in configs]
    images = len(dataset.train_labels)
    for config in configs:
        if (rest := images % config.batch_size) and not config.drop_last:
            raise ValueError(
                f"drop_last should be True where batch_size={config.batch_size} does not divide the {images} images, "
                f"since some orders would end every epoch on a batch of {rest} and others not, but got False"
            )
        config.build_order(images, dataset.train_labels)  # raises here, before any order is trained
    return dataset, configs


def check_ended(jobs: Sequence[Job], dataset: Dataset) -> None:
    """Raise if a run that has ended used other data of the same name, or other hardware than asked for now."""
    for job in jobs:
        if (result := job.result()) is None:
            continue
        if result["data"]["fingerprint"] != dataset.fingerprint:
            raise ValueError(
                f"{job.folder} holds a run on other data: {dataset.name} has changed since; keep those runs apart"
            )
        # Such runs cannot be paired: batch norm sees only a process's share, and other kernels round differently.
        asked = {**job.hardware.to_dict(), "processes": job.hardware.devices * job.hardware.num_nodes}
        for name in ("processes", "threads", "compile"):
            if (used := result["hardware"].get(name, asked[name])) != asked[name]:
                raise ValueError(
                    f"{job.folder} holds a run with {name}={used}, but {asked[name]} is asked for now; keep those "
                    f"runs apart"
                )


def is_named(data: Any) -> bool:
    """Return whether data have a name or a path, so that another process can read them."""
    return isinstance(data, (str, os.PathLike))


def _of_order(recipe: Mapping[str, Any], order: str, orders: Sequence[str]) -> dict[str, Any]:
    """Return the recipe of one order. A mapping becomes the order's value, or is left out if it has none."""
    found = {}
    for name, value in recipe.items():
        if not isinstance(value, Mapping):
            found[name] = value
            continue
        if odd := set(value) - set(orders):
            others = ", ".join(sorted(odd))
            raise ValueError(f"{name} should have values for {', '.join(orders)}, but got one for {others}")
        if order in value:
            found[name] = value[order]
    return found


def _refuse_without_effect(recipe: Mapping[str, Any], configs: Sequence[RunConfig]) -> None:
    """Raise if a field has no effect in any of the trainings."""
    if "momentum" in recipe and all(config.optimizer != "sgd" for config in configs):
        raise ValueError(f"momentum should be left out with the optimizer 'adamw', but got {recipe['momentum']}")
    if "decay_factor" in recipe and not any(config.decays for config in configs):
        raise ValueError(
            f"decay_factor should be left out where the learning rate never drops in steps, but got "
            f"{recipe['decay_factor']}"
        )


def _read(data: Any, recipe: Mapping[str, Any]) -> tuple[Dataset, str]:
    """Return the data, reduced as the recipe says, and their name in a config."""
    cut: dict[str, Any] = {name: recipe.get(name) for name in ("images_per_class", "image_size")}
    cut["held_out"] = recipe.get("held_out", False)
    if is_named(data):
        return load(data, **cut), os.fspath(data)
    whole = as_dataset(data, image_size=cut["image_size"])
    # The fingerprint distinguishes data of the same name.
    return reduce(whole, **cut), f"{whole.name}@{whole.fingerprint[:8]}"


def _with_network(config: RunConfig, dataset: Dataset) -> RunConfig:
    """Return the config, with a digest in the name of a user's own network; raise if the network does not fit."""
    from replenish.lab.models.network_digest import network_digest
    from replenish.lab.models.own_network import is_own
    from replenish.lab.training import named_model

    make = named_model(config, dataset)
    if not is_own(config.model):
        return config
    return dataclasses.replace(config, model=f"{config.model}@{network_digest(make)}")


def _model_name(model: str | Callable[[], nn.Module]) -> str:
    """Return a network's name. The name of a user's own network changes when the network does."""
    if isinstance(model, str):
        from replenish.lab.models import entry
        from replenish.lab.models.own_network import is_own

        if not is_own(model):
            entry(model)  # raises if there is none
        return model
    import torch

    if isinstance(model, torch.nn.Module) or not callable(model):
        got = "a network itself" if isinstance(model, torch.nn.Module) else repr(model)
        raise TypeError(
            f"model should be a network's name or make a network, as a class or a function does, but got {got}; every "
            f"run needs fresh weights"
        )
    from replenish.lab.models.network_digest import network_name

    return network_name(model)


def warnings_about(dataset: Dataset, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield warnings about the runs; the first group is the one that the others are compared with."""
    images = len(dataset.test_labels)
    if images < FEW_TEST_IMAGES:
        yield (
            f"the test set is tiny: one of its {images} images is {100 / images:.2g} points, and the intervals say "
            f"nothing about other test images"
        )
    means = [sum(group.errors.values()) / len(group.errors) for group in groups.values() if group.errors]
    guessing = 100 * (1 - np.bincount(dataset.test_labels).max() / images)
    if means and min(means) > UNTRAINED * guessing:
        yield (
            f"the networks are untrained: the least mean test error is {min(means):.1f} %, and guessing the most "
            f"frequent class gives {guessing:.1f} %; more epochs or another learning rate would help"
        )
    if means and max(means) * images / 100 < FEW_WRONG_IMAGES:
        yield (
            f"the networks are saturated: they are wrong on fewer than {FEW_WRONG_IMAGES} of {images} test images on "
            f"average; fewer training images a class, or harder data, would leave something to differ in"
        )
    baseline, *others = groups.values()
    for group in others:
        if differing := execution_text(group, baseline):
            yield differing.removesuffix(".")
