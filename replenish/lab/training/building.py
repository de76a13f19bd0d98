"""The network and the optimizer that a config names."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from replenish.lab.config import RunConfig
from replenish.lab.data import Dataset
from replenish.lab.models import build
from replenish.lab.models.own_network import is_own, own_network

MakeModel = Callable[[], nn.Module]


def named_model(config: RunConfig, dataset: Dataset) -> MakeModel:
    """Return what makes the network that a config names, for the classes and the images of a dataset."""
    height, width = dataset.image_size
    overrides = {} if config.dropout is None else {"dropout": config.dropout}
    if is_own(config.model):
        size = height if height == width else (height, width)
        return own_network(config.model, dataset.channels, dataset.num_classes, size, **overrides)
    if height != width:
        raise ValueError(
            f"the networks by name want square images, but those of {dataset.name} are {height} x {width}; give an "
            f"image_size"
        )
    return lambda: build(config.model, dataset.channels, dataset.num_classes, height, **overrides)


def build_optimizer(config: RunConfig, network: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer that a config names; the learning rate of every step is set by the loop."""
    parameters, rate, decay = network.parameters(), config.learning_rate, config.weight_decay
    if config.optimizer == "adamw":
        return torch.optim.AdamW(parameters, rate, weight_decay=decay)
    return torch.optim.SGD(parameters, rate, momentum=config.momentum, weight_decay=decay, nesterov=config.nesterov)
