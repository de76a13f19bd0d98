"""Configs and numbers in words: what was trained on what, how long, and numbers as they are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

from replenish.lab.config import RunConfig
from replenish.lab.show import NOTHING
from replenish.lab.statistics import Interval


def percent(value: float | None) -> str:
    """Return an error with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def span(interval: Interval | None) -> str:
    """Return an interval."""
    return "no interval" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


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
    return (
        f"Data: {data_words(config)}. Network: {config.model}. Batches of {config.batch_size}, {config.epochs} "
        f"effective epochs, {_rate_words(config)}; {_optimizer_words(config)}; {_augmented_words(config)}; "
        f"precision {config.precision}."
    )


def recipe_titles(configs: Sequence[RunConfig]) -> list[str]:
    """Return a title for each recipe, with what is unusual among them and not what most of them share.

    Example:
        >>> some = [RunConfig(dataset="digits", model="wrn-10-1", learning_rate=rate) for rate in (0.1, 0.2)]
        >>> recipe_titles(some)
        ['digits, wrn-10-1: learning rate 0.1', 'digits, wrn-10-1: learning rate 0.2']
    """
    parts = [_title_parts(config) for config in configs]
    usual = {}
    for name in parts[0] if parts else ():
        text, count = Counter(each[name] for each in parts).most_common(1)[0]
        usual[name] = text if count > 1 or len(parts) == 1 else ""
    found = []
    for config, each in zip(configs, parts, strict=True):
        unusual = [text for name, text in each.items() if text != usual[name]]
        found.append(": ".join(filter(None, [f"{dataset_name(config)}, {config.model}", ", ".join(unusual)])))
    # Recipes that differ in a field without a phrase have equal titles, and so their folders' digests.
    repeated = {title for title, count in Counter(found).items() if count > 1}
    return [
        f"{title} ({config.slug.rpartition('-')[2]})" if title in repeated else title
        for title, config in zip(found, configs, strict=True)
    ]


def _title_parts(config: RunConfig) -> dict[str, str]:
    """Return what a title can say about a recipe, by field."""
    images = "all images" if config.images_per_class is None else f"{config.images_per_class} images a class"
    return {
        "images": images,
        "image_size": f"{config.image_size} pixels" if config.image_size else "full size",
        "batch_size": f"batches of {config.batch_size}",
        "learning_rate": f"learning rate {config.learning_rate:.4g}",
        "schedule": f"rate drops at {schedule_words(config)}" if config.decays else schedule_words(config),
        "augmented": _augmented_words(config),
        "optimizer": _optimizer_words(config),
        "order_number": f"order number {config.order_number}",
        "short": "short batches kept" if not config.drop_last else "short batches dropped",
    }


def _augmented_words(config: RunConfig) -> str:
    mirrored = "mirrored at every second visit" if config.alternating_flip else "mirrored"
    images = [f"padded by {config.pad} and cropped"] if config.pad else []
    images += [mirrored] if config.flip else []
    return f"images {' and '.join(images)}" if images else "images neither cropped nor mirrored"


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
