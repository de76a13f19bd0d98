"""Numbers as they are printed in cells: a median with its n and interval, a difference, a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath, PureWindowsPath

from replenish.lab.config import RunConfig
from replenish.lab.report.document import NOTHING, Cell
from replenish.lab.report.grouping import Group
from replenish.lab.statistics import (
    Estimate,
    Interval,
    PairedDifference,
    mean_with_interval,
    median_with_interval,
    signed,
)


def percent(value: float | None) -> str:
    """Return an error with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def span(interval: Interval | None) -> str:
    """Return an interval with its coverage, which is not 95 % for a median of few."""
    if interval is None:
        return "no interval"
    return f"{interval.low:.2f} to {interval.high:.2f} ({100 * interval.coverage:.4g} %)"


def median_cell(group: Group) -> Cell:
    """Return the median of the last epoch's test error, with n, the interval, and the runs that are not in it."""
    return _estimate_cell(group, median_with_interval)


def mean_cell(group: Group) -> Cell:
    """Return the mean of the last epoch's test error, with n, the interval, and the runs that are not in it."""
    return _estimate_cell(group, mean_with_interval)


def _estimate_cell(group: Group, estimate: Callable[[Iterable[float]], Estimate]) -> Cell:
    missing = tuple(f"{count} {status}" for status in ("diverged", "unfinished") if (count := group.count(status)))
    errors = group.errors
    if not errors:
        return Cell(NOTHING, ("n = 0", *missing))
    found = estimate(errors.values())
    return Cell(percent(found.value), (f"n = {found.n}", span(found.interval), *missing))


def best_cell(group: Group) -> Cell:
    """Return the median of the best epoch's test error."""
    best = group.best_errors
    if not best:
        return Cell(NOTHING, muted=True)
    found = median_with_interval(best.values())
    return Cell(percent(found.value), (f"n = {found.n}", span(found.interval)), muted=True)


def difference_cell(difference: PairedDifference) -> Cell:
    """Return a mean paired difference with n and its 95 % interval, as the head of its column says."""
    if difference.mean is None:
        return Cell(NOTHING)
    interval = difference.interval
    where = "no interval" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"
    return Cell(signed(difference.mean), (f"n = {difference.n}", where))


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
    """Return when the learning rate drops.

    Example:
        >>> schedule_words(RunConfig(epochs=40))
        '24, 30, 35 of 40'
    """
    return f"{listed(f'{epoch:g}' for epoch in config.decays) or 'never'} of {config.epochs}"


def listed(words: Iterable[str]) -> str:
    """Return words with commas between them."""
    return ", ".join(words)
