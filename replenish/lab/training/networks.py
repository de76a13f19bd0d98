"""The network of a run: made from its config, or loaded from the folder of a finished run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from replenish.lab.config import RunConfig
from replenish.lab.data import Dataset
from replenish.lab.models import build, entry
from replenish.lab.models.layers import weights_sha256
from replenish.lab.models.own_network import is_own, own_network
from replenish.lab.runs import RunFolder

MakeModel = Callable[[], nn.Module]


def named_model(config: RunConfig, dataset: Dataset) -> MakeModel:
    """Return a function that makes the network of a config, for the classes and images of a dataset."""
    height, width = dataset.image_size
    if height != width and not is_own(config.model):
        raise ValueError(
            f"the networks by name want square images, but those of {dataset.name} are {height} x {width}; give an "
            f"image_size"
        )
    return _maker(config, dataset.channels, dataset.num_classes, dataset.image_size)


def load_network(run_folder: str | os.PathLike[str], *, model: MakeModel | None = None) -> nn.Module:
    """Return the network of a finished run as the run left it, on the CPU and ready to be tested.

    It takes images as the run's tests did: channels first, standardised by the mean and the standard deviation of the
    run's training data, as `replenish.lab.data.Batches.ordered` yields them.

    Args:
        run_folder: The folder of one run, such as `runs/<name>/seed0`.
        model: A function that makes the network, if it is your own.

    Raises:
        ValueError: The run has not finished, its folder has no undamaged checkpoint, or the weights differ from those
            that its result names.

    Example:
        >>> import tempfile
        >>> from replenish.lab import RunConfig, load_network, train
        >>> config = RunConfig(dataset="digits", model="wrn-10-1", epochs=1, pad=1, flip=False, decay_epochs=())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train(config, folder)
        ...     network = load_network(folder)
        >>> network(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """
    folder = RunFolder(run_folder)
    config, result = folder.config(), folder.result()
    if result is None:
        raise ValueError(
            f"run_folder should be of a finished run, but {folder.path} has no result; train it to its end"
        )
    if result["status"] != "finished":
        raise ValueError(f"run_folder should be of a finished run, but {folder.path} has status {result['status']!r}")
    checkpoint, faults = folder.checkpoints.load()
    if checkpoint is None:
        why = "; ".join(faults) or "it has none, since records that are kept or shared leave out the weights"
        raise ValueError(
            f"run_folder should have a checkpoint, but in {folder.path}: {why}; train that config again in a new folder"
        )
    with torch.random.fork_rng(devices=[]):  # a network is made with fresh weights, which are replaced
        network = (model or _maker_of_finished(config, result["data"]))()
    try:
        network.load_state_dict(checkpoint["model"], assign=True)  # `assign` keeps the run's precision
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"model should make the network of {folder.path}, but its weights do not fit: {reason}"
        ) from None
    if weights_sha256(network) != result["weights_sha256"]:
        raise ValueError(
            f"the checkpoint in {folder.path} does not belong to its result; train that config in a new folder"
        )
    return network.eval()


def _maker_of_finished(config: RunConfig, data: dict[str, Any]) -> MakeModel:
    """Return a function that makes the network of a finished run, for the data that its result describes."""
    if not is_own(config.model):
        try:
            entry(config.model)
        except ValueError:
            raise ValueError(
                f"model should be given for your own network, but the run's is {config.model!r} and got None"
            ) from None
    return _maker(config, data["channels"], data["classes"], data["image_size"])


def _maker(config: RunConfig, channels: int, classes: int, image_size: Sequence[int]) -> MakeModel:
    height, width = image_size
    overrides: dict[str, Any] = {} if config.dropout is None else {"dropout": config.dropout}
    if is_own(config.model):
        size = height if height == width else (height, width)
        return own_network(config.model, channels, classes, size, **overrides)
    return partial(build, config.model, channels, classes, height, **overrides)
