"""Configs and numbers as text."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

from replenish.lab.config import RunConfig
from replenish.lab.show import NOTHING
from replenish.lab.statistics import Interval

#: The config fields that a recipe's title leaves out or always shows, and the fields that it shows if they are unusual.
_NOT_IN_TITLES = {"dataset", "model", "order", "pool_size", "sequence", "seed", "test_every", "clean_every", "held_out"}
_TITLE_FIELDS = [field.name for field in dataclasses.fields(RunConfig) if field.name not in _NOT_IN_TITLES]


def percent(value: float | None) -> str:
    """Return an error with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def span(interval: Interval | None) -> str:
    """Return an interval as text."""
    return "no interval" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def p_text(value: float | None) -> str:
    """Return a p-value with three decimals."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """Return a time in a suitable unit.

    Example:
        >>> duration(41.2), duration(600), duration(7380)
        ('41 s', '10 min', '2 h 3 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def dataset_name(config: RunConfig) -> str:
    """Return the dataset's name without its folders, which differ between machines."""
    plain = config.dataset.rstrip("/\\") or config.dataset
    return PureWindowsPath(PurePosixPath(plain).name).name or plain


def data_text(config: RunConfig) -> str:
    """Return the data of a config as text.

    Example:
        >>> data_text(RunConfig(dataset="cifar100", images_per_class=50, image_size=16))
        'cifar100, 50 images per class, reduced to 16 x 16 pixels'
    """
    parts = [dataset_name(config)]
    if config.images_per_class is not None:
        parts.append(f"{config.images_per_class:,} images per class")
    if config.image_size is not None:
        parts.append(f"reduced to {config.image_size} x {config.image_size} pixels")
    return ", ".join(parts)


def schedule_text(config: RunConfig) -> str:
    """Return the epochs at which the learning rate drops, or the schedule if there are none.

    Example:
        >>> schedule_text(RunConfig(epochs=40)), schedule_text(RunConfig(epochs=40, schedule="cosine"))
        ('24, 30, 35 of 40', 'a cosine over 40')
    """
    if config.schedule == "cosine":
        return f"a cosine over {config.epochs}"
    drops = ", ".join(f"{epoch:g}" for epoch in config.decays)
    return f"{drops} of {config.epochs}" if drops else f"a constant rate over {config.epochs}"


def recipe_text(config: RunConfig) -> str:
    """Return a recipe in a sentence.

    Example:
        >>> recipe_text(RunConfig(dataset="digits", model="wrn-10-1", epochs=40, pad=0, flip=False))
        'Data: digits. Network: wrn-10-1. Batches of 64, 40 effective epochs, learning rate 0.1, times 0.1 at \
24, 30, 35 of 40; momentum 0.9, weight decay 0.0005; images neither cropped nor mirrored; precision 32-true.'
    """
    return (
        f"Data: {data_text(config)}. Network: {config.model}. Batches of {config.batch_size}, {config.epochs} "
        f"effective epochs, {_learning_rate_text(config)}; {_optimizer_text(config)}; {_augmentation_text(config)}; "
        f"precision {config.precision}."
    )


def recipe_titles(configs: Sequence[RunConfig]) -> list[str]:
    """Return a title for each recipe: its data, its network, and its fields that most of the recipes do not share.

    Example:
        >>> some = [RunConfig(dataset="digits", model="wrn-10-1", learning_rate=rate) for rate in (0.1, 0.2)]
        >>> recipe_titles(some)
        ['digits, wrn-10-1: learning rate 0.1', 'digits, wrn-10-1: learning rate 0.2']
    """
    usual = {}
    for name in _TITLE_FIELDS:
        for value, count in Counter(getattr(config, name) for config in configs).most_common(1):
            usual[name] = [value] if count > 1 or len(configs) == 1 else []
    titles = []
    for config in configs:
        values = {name: getattr(config, name) for name in _TITLE_FIELDS}
        unusual = [
            f"{name.replace('_', ' ')} {_value_text(value)}"
            for name, value in values.items()
            if value not in usual[name]
        ]
        titles.append(": ".join(filter(None, [f"{dataset_name(config)}, {config.model}", ", ".join(unusual)])))
    # Recipes with equal titles get the digest of their config.
    repeated = {title for title, count in Counter(titles).items() if count > 1}
    return [
        f"{title} ({config.slug.rpartition('-')[2]})" if title in repeated else title
        for title, config in zip(titles, configs, strict=True)
    ]


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value_text, value))
    if isinstance(value, bool) or value is None:
        return {True: "on", False: "off", None: "default"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _augmentation_text(config: RunConfig) -> str:
    mirrored = "mirrored at every second visit" if config.alternating_flip else "mirrored"
    images = [f"padded by {config.pad} and cropped"] if config.pad else []
    images += [mirrored] if config.flip else []
    return f"images {' and '.join(images)}" if images else "images neither cropped nor mirrored"


def _learning_rate_text(config: RunConfig) -> str:
    if config.schedule == "cosine":
        course = "down to 0 along a cosine"
    else:
        course = f"times {config.decay_factor:g} at {schedule_text(config)}" if config.decays else "constant"
    rise = f" after a linear warm-up of {config.warm_up_epochs:g} effective epochs" if config.warm_up_epochs else ""
    return f"learning rate {config.learning_rate:g}{rise}, {course}"


def _optimizer_text(config: RunConfig) -> str:
    momentum = f"{'Nesterov momentum' if config.nesterov else 'momentum'} {config.momentum:g}"
    parts = ["AdamW" if config.optimizer == "adamw" else momentum, f"weight decay {config.weight_decay:g}"]
    parts += [f"label smoothing {config.label_smoothing:g}"] if config.label_smoothing else []
    parts += [f"dropout {config.dropout:g}"] if config.dropout is not None else []
    return ", ".join(parts)
