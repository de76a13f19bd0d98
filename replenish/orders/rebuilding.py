"""An order from its config: what a saved state, a record or a page of notes names is built again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from replenish.orders.cursor import CursorOrder
from replenish.orders.fitted import FittedOrder
from replenish.orders.registry import ORDERS


def order_from_config(config: Mapping[str, int | str], **facts: Any) -> CursorOrder:
    """Return the order that `order.config()` named, or a state of a sampler.

    Args:
        config: What `config()` returned; a state's own fields may be among it.
        **facts: The arrays that a config names by their checksums alone: `labels`, `weights`, `lengths`, `shard_size`
            or `sequence`.

    Raises:
        ValueError: There is no such order, an array is missing, or one is another than the config's.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(10, 4, seed=3, drop_last=True)
        >>> order_from_config(order.config()) == order
        True
    """
    by_class = {entry.order_class.__name__: entry for entry in ORDERS.values()}
    if (kind := config.get("order")) not in by_class:
        raise ValueError(f"order should be the name of one of replenish's orders, but the config has {kind!r}")
    entry = by_class[str(kind)]
    if missing := [name for name in ("num_samples", "batch_size", "seed") if name not in config]:
        raise ValueError(f"{missing[0]} should be in the config of an order, but it has {', '.join(sorted(config))}")
    if unknown := [name for name in facts if name not in entry.options]:
        raise ValueError(f"{unknown[0]} should not be given for {kind}, which has no such option")
    options = {name: _option(entry.order_class, name, config, facts) for name in entry.options}
    sizes = {name: config[name] for name in ("num_samples", "batch_size", "seed")}
    order = entry.order_class(**sizes, **options)  # type: ignore[arg-type]
    if "loader_last_batch_size" in config:  # as `exec` and `reorder` fit it to a loader
        order = FittedOrder(order, int(config["steps"]), int(config["loader_last_batch_size"]))
    for name, value in order.config().items():
        if config.get(name) != value:
            raise ValueError(
                f"{name} is {config.get(name, 'missing')!r} in the config, but what it names has {value!r}"
            )
    return order


def _option(
    order_class: type[CursorOrder], name: str, config: Mapping[str, int | str], facts: Mapping[str, Any]
) -> Any:
    """Return the argument of an order that its config tells in plain ints and strings."""
    default = inspect.signature(order_class).parameters[name].default
    if name in facts:
        return facts[name]
    value = config.get(name, default)
    if value is inspect.Parameter.empty:
        raise ValueError(f"{name} should be in the config of a {order_class.__name__}, but is missing")
    if isinstance(value, str) and value.startswith("sha256:"):
        raise ValueError(f"{name} should be given too, since the config has its checksum alone ({value[:19]}...)")
    if isinstance(default, bool):
        return bool(value)
    return None if value == "sizes" else value  # what stratified batches call the shares that classes have
