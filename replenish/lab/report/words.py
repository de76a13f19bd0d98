"""Configs and numbers in words: what was trained on what, how long, and numbers as they are printed."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

from replenish.lab.config import RunConfig
from replenish.lab.show import NOTHING
from replenish.lab.statistics import Interval


def percent(value: float | None) -> str:
    """Return an error with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def span(interval: Interval | None) -> str:
    """Return an interval with its coverage, which is not 95 % for a median of few."""
    if interval is None:
        return "no interval"
    return f"{interval.low:.2f} to {interval.high:.2f} ({100 * interval.coverage:.4g} %)"


def p_words(value: float | None) -> str:
    """Return a p-value with three decimals."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it.

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
    """Return the dataset without the folders above it, which say something about a machine and not about the data."""
    plain = config.dataset.rstrip("/\\") or config.dataset
    return PureWindowsPath(PurePosixPath(plain).name).name or plain


def data_words(config: RunConfig) -> str:
    """Return what a config trains on.

    Example:
        >>> data_words(RunConfig(dataset="cifar100", images_per_class=50, image_size=16))
        'cifar100, 50 images a class, reduced to 16 x 16 pixels'
    """
    parts = [dataset_name(config)]
    if config.images_per_class is not None:
        parts.append(f"{config.images_per_class:,} images a class")
    if config.image_size is not None:
        parts.append(f"reduced to {config.image_size} x {config.image_size} pixels")
    return ", ".join(parts)


def schedule_words(config: RunConfig) -> str:
    """Return when the learning rate drops, or how it goes if there are no such epochs.

    Example:
        >>> schedule_words(RunConfig(epochs=40)), schedule_words(RunConfig(epochs=40, schedule="cosine"))
        ('24, 30, 35 of 40', 'a cosine over 40')
    """
    if config.schedule == "cosine":
        return f"a cosine over {config.epochs}"
    drops = ", ".join(f"{epoch:g}" for epoch in config.decays)
    return f"{drops} of {config.epochs}" if drops else f"a constant rate over {config.epochs}"


def recipe_words(config: RunConfig) -> str:
    """Return what every order of a recipe was trained with, in a sentence.

    Example:
        >>> recipe_words(RunConfig(dataset="digits", model="wrn-10-1", epochs=40, pad=0, flip=False))
        'Data: digits. Network: wrn-10-1. Batches of 64, 40 effective epochs, learning rate 0.1, times 0.1 at \
24, 30, 35 of 40; momentum 0.9, weight decay 0.0005; images neither cropped nor mirrored; precision 32-true.'
    """
    mirrored = "mirrored at every second visit" if config.alternating_flip else "mirrored"
    images = [f"padded by {config.pad} and cropped"] if config.pad else []
    images += [mirrored] if config.flip else []
    augmented = f"images {' and '.join(images)}" if images else "images neither cropped nor mirrored"
    return (
        f"Data: {data_words(config)}. Network: {config.model}. Batches of {config.batch_size}, {config.epochs} "
        f"effective epochs, {_rate_words(config)}; {_optimizer_words(config)}; {augmented}; "
        f"precision {config.precision}."
    )


def _rate_words(config: RunConfig) -> str:
    """Return how the learning rate goes."""
    if config.schedule == "cosine":
        course = "down to 0 along a cosine"
    else:
        course = f"times {config.decay_factor:g} at {schedule_words(config)}" if config.decays else "constant"
    rise = f" after a linear warm-up of {config.warm_up_epochs:g} effective epochs" if config.warm_up_epochs else ""
    return f"learning rate {config.learning_rate:g}{rise}, {course}"


def _optimizer_words(config: RunConfig) -> str:
    """Return what turns gradients into steps, and what holds weights back."""
    momentum = f"{'Nesterov momentum' if config.nesterov else 'momentum'} {config.momentum:g}"
    words = ["AdamW" if config.optimizer == "adamw" else momentum, f"weight decay {config.weight_decay:g}"]
    words += [f"label smoothing {config.label_smoothing:g}"] if config.label_smoothing else []
    words += [f"dropout {config.dropout:g}"] if config.dropout is not None else []
    return ", ".join(words)
