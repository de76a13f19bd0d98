"""The sizes at which an experiment can be run: the paper's, one for two CPU cores, one for a demonstration.

A scale changes the data and the network. It keeps what is compared: the order, the batch size, the optimizer and the
schedule, scaled to the epochs. Every run's config contains the scale's choices. They were made and committed before any
of their results were seen; docs/reproducing.md gives the reasons.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from replenish.lab.config import RunConfig

#: Networks of the same kinds that one CPU thread trains in minutes. Networks of a fixed size do not change.
MINI_NETWORKS = {
    "wrn-28-10": "wrn-10-1",
    "wrn-70-10": "wrn-22-1",
    "wide-resnet-28-10": "wide-resnet-10-1",
    "wide-resnet-40-4": "wide-resnet-16-1",
    "wide-resnet-16-8": "wide-resnet-10-2",
    "densenet-bc-190-40": "densenet-bc-22-8",
    "resnet-110": "resnet-14",
    "resnet-1202": "resnet-20",
    "resnet-110-stochastic-depth": "resnet-14-stochastic-depth",
    "resnet-1202-stochastic-depth": "resnet-20-stochastic-depth",
    "shake-shake-26-2x96d": "shake-shake-8-2x16d",
    "shake-shake-29-2x4x64d": "shake-shake-11-2x4x16d",
}


def full(config: RunConfig) -> RunConfig:
    """Return the experiment as in the paper."""
    return config


def mini(config: RunConfig) -> RunConfig:
    """Return the experiment for two CPU cores: WRN-10-1 takes about four minutes on one thread.

    100 training images per class instead of 500 or 5,000, of 16 x 16 pixels instead of 32 x 32, crops padded by 2
    instead of 4, a small network of the same kind, 40 effective epochs instead of 200. All test images stay.
    """
    return _small(config, 40, images_per_class=100, image_size=16, pad=2)


def digits(config: RunConfig) -> RunConfig:
    """Return the experiment on scikit-learn's digits, in seconds: to see the lab at work, not to learn anything.

    8 x 8 pixels, crops padded by 1, no mirror images (a mirrored 2 is not a 2), 20 effective epochs.
    """
    return _small(config, 20, dataset="digits", pad=1, flip=False)


def _small(config: RunConfig, epochs: int, **data: Any) -> RunConfig:
    model = MINI_NETWORKS.get(config.model, config.model)
    return dataclasses.replace(config, model=model, **data).for_epochs(epochs)


SCALES: dict[str, Callable[[RunConfig], RunConfig]] = {"full": full, "mini": mini, "digits": digits}
