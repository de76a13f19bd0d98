"""How uniform the orders' shuffles are: the battery's findings, and a picture of an epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from replenish.diagnostics import Finding, ShuffleQuality, shuffle_quality
from replenish.lab.show import Chart, Column, Figure, Reference, Series, Table
from replenish.orders.protocol import Order

_MOST_DRAWS = 2**18
_MOST_BATCHES = 200  # of an epoch, for the picture


@dataclass(frozen=True)
class OrderShuffle:
    """One order: what the battery found, and the mean index of some batches of the first epoch, as a part of N."""

    quality: ShuffleQuality
    steps: list[int]
    means: list[float]


def measure_shuffles(orders: Mapping[str, Order]) -> dict[str, OrderShuffle]:
    """Run the battery on orders; nothing is returned for a single sample, which cannot be shuffled."""
    found = {}
    for name, order in orders.items():
        if order.num_samples < 2:
            return {}
        steps = min(order.steps_per_epoch, max(1, _MOST_DRAWS // order.batch_size))
        every = math.ceil(steps / _MOST_BATCHES)
        batches = enumerate(order.batches(0, steps))
        kept = [(step, batch) for step, batch in batches if step % every == 0 and len(batch)]
        means = [round(float((batch.mean() + 0.5) / order.num_samples), 4) for _, batch in kept]
        quality = shuffle_quality(order, order.num_samples, max_draws=_MOST_DRAWS)
        found[name] = OrderShuffle(quality, [step for step, _ in kept], means)
    return found


def shuffle_figure(shuffles: Mapping[str, OrderShuffle]) -> Figure:
    """Return the mean index of the batches of an epoch as a chart."""
    series = [Series(name, one.steps, one.means, order=name) for name, one in shuffles.items()]
    first = next(iter(shuffles.values())).quality
    left = max(first.num_samples - first.batch_size, 0) / (first.num_samples - 1)
    spread = math.sqrt(left / (12 * first.batch_size))
    levels = tuple(
        Reference(0.5 + side * 2 * spread, f"{0.5 + side * 2 * spread:.2f}: two standard deviations {where}")
        for side, where in ((-1, "below"), (1, "above"))
    )
    chart = Chart(
        "shuffle", "step of the first epoch", "mean index of the batch, as a part of N", tuple(series), levels
    )
    levels_found = ", ".join(f"{name} {one.quality.level}" for name, one in shuffles.items())
    caption = (
        f"After a uniform shuffle the mean index of a batch stays near the middle, with 19 of 20 between the lines. A "
        f"shuffle that leaves samples near their place drifts. Judged by the whole battery: {levels_found}."
    )
    return Figure("shuffle", "How uniform the shuffle is", caption, (chart,))


def shuffle_table(shuffles: Mapping[str, OrderShuffle]) -> Table:
    """Return the findings of all orders: effects, and levels where they are not ok."""
    names = list(dict.fromkeys(each.name for one in shuffles.values() for each in one.quality.findings))
    columns = [Column("", str, numeric=False)]
    columns += [Column(order, partial(_shown, one.quality)) for order, one in shuffles.items()]
    caption = (
        "Ratios to a uniform shuffle, or correlations (signed), of every order with what it means to be: "
        "replenish.diagnostics.shuffle_quality."
    )
    return Table("shuffle-table", "How uniform the shuffle is", columns, [(name, name) for name in names], caption)


def _shown(quality: ShuffleQuality, name: str) -> str:
    found: Finding | None = next((each for each in quality.findings if each.name == name), None)
    if found is None or found.effect is None:
        return ""
    is_correlation = name in ("successive batches", "drift", "epochs", "seeds")
    text = f"{found.effect:+.3f}" if is_correlation else f"{found.effect:.3g}" if np.isfinite(found.effect) else "many"
    return text if found.level == "ok" else f"{text} ({found.level})"
