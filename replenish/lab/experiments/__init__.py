"""Experiments by name, each a complete config: the paper's and the decisive one; and the scales to run them at.

`find` returns the configs of a name or a group of names (`table3`, `table2/wrn-28-10`, `decisive`) at a scale. Two
names with the same config share their runs: figure 2 shows runs of table 3.

There are three scales: the paper's, one for two CPU cores, and one for a demonstration. A scale changes the data and
the network. It keeps what is compared: the order, the batch size, the optimizer, and the schedule, which is scaled to
the epochs. We committed the choices for the scales before any of their results were seen; docs/reproducing.md has the
reasons.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any

from replenish import checks
from replenish.lab.config import RunConfig
from replenish.lab.experiments.published import DECISIVE, EXPERIMENTS, Stage, stage_of

__all__ = ["ADDED", "EXPERIMENTS", "SCALES", "Stage", "configs", "decisive_configs", "find", "names", "stage_of"]

#: Experiments that a caller adds before it calls `find`. They have their own size; only the scale `digits` changes it.
ADDED: dict[str, RunConfig] = {}
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

    It has 100 training images per class instead of 500 or 5,000, of 16 x 16 pixels instead of 32 x 32, crops padded by
    2 instead of 4, a small network of the same kind, and 40 effective epochs instead of 200. It keeps all test images.
    """
    return _small(config, 40, images_per_class=100, image_size=16, pad=2)


def digits(config: RunConfig) -> RunConfig:
    """Return the experiment on scikit-learn's digits, which takes seconds: it shows how the lab works, nothing else.

    Images have 8 x 8 pixels, crops are padded by 1 and not mirrored (a mirrored 2 is not a 2), for 20 effective epochs.
    """
    return _small(config, 20, dataset="digits", pad=1, flip=False)


def _small(config: RunConfig, epochs: int, **data: Any) -> RunConfig:
    model = MINI_NETWORKS.get(config.model, config.model)
    return dataclasses.replace(config, model=model, **data).for_epochs(epochs)


SCALES: dict[str, Callable[[RunConfig], RunConfig]] = {"full": full, "mini": mini, "digits": digits}


def configs(scale: str = "full") -> dict[str, RunConfig]:
    """Return the config of every experiment of the paper at a scale, with seed 0."""
    checks.one_of("scale", scale, SCALES)
    return {name: SCALES[scale](config) for name, config in EXPERIMENTS.items()}


def decisive_configs(scale: str = "full") -> dict[str, RunConfig]:
    """Return the runs of the decisive experiment's stages; scales other than `full` are for trials."""
    return {name: SCALES[scale](config) for name, config in DECISIVE.items()}


def find(name: str, scale: str = "full") -> dict[str, RunConfig]:
    """Return the experiment of a name, or else a group, or else all experiments whose names begin with it.

    Raises:
        ValueError: There is none; the message suggests similar names.

    Example:
        >>> list(find("figure2", scale="mini"))
        ['figure2/wrn-60-120-160', 'figure2/wrn-120-150-175', 'figure2/wrn-srs-120-150-175']
    """
    wanted = name.strip("/")
    added = {known: SCALES[scale](config) for known, config in ADDED.items()} if scale == "digits" else ADDED
    at_scale = {**configs(scale), **decisive_configs(scale), **added}
    found = {known: config for known, config in at_scale.items() if known == wanted or known.startswith(f"{wanted}/")}
    if not found and wanted:
        found = {known: config for known, config in at_scale.items() if known.startswith(wanted)}
    if not found:
        nearest = difflib.get_close_matches(wanted, names(), n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}? " if nearest else ""
        raise ValueError(f"there is no experiment named {name!r}; {hint}`replenish list` shows them all")
    return found


def names() -> list[str]:
    """Return every name that `find` knows: the experiments and their groups."""
    known = (*EXPERIMENTS, *DECISIVE, *ADDED)
    return sorted({"/".join(name.split("/")[:depth]) for name in known for depth in (1, 2, 3)})
