"""Orders by the names that users type: one of `ORDERS`, or the path of a config file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replenish import checks
from replenish.orders.cursor import CursorOrder
from replenish.orders.rebuilding import order_of_file, read_order
from replenish.orders.registry import ORDERS


def is_file(name: object) -> bool:
    """Return whether the name of an order is the path of a config file."""
    return isinstance(name, str) and name.endswith(".json")


def build_order(name: str, num_samples: int, batch_size: int, *, seed: int = 0, **options: Any) -> CursorOrder:
    """Return the order that `name` stands for in `ORDERS`.

    Args:
        name: One of the names of `ORDERS`.
        num_samples: How many samples there are.
        batch_size: How many a step draws, over all processes.
        seed: Chooses the draws.
        **options: Arguments that not all orders have; one that this order does not have is an error.

    A name that ends in ".json" is the path of a config file, such as a mixture's; see `order_of_file`.

    Example:
        >>> build_order("reshuffling", 10, 4, drop_last=True).steps_per_epoch
        2
    """
    if is_file(name):
        return order_of_file(name, num_samples, batch_size, seed=seed, **options)
    entry = ORDERS[checks.one_of("order", name, ORDERS)]
    if unknown := [option for option in options if option not in entry.options]:
        known = f"only {', '.join(entry.options)}" if entry.options else "none"
        raise ValueError(
            f"{unknown[0]} should not be given for the order {name!r}, which has {known} of such options, but got "
            f"{unknown[0]}={options[unknown[0]]!r}"
        )
    if missing := [need for need in entry.needs if options.get(need) is None]:
        raise ValueError(
            f"{missing[0]} should be given for the order {name!r}, which needs {' and '.join(entry.needs)} of the "
            f"data, but got none"
        )
    return entry.order_class(num_samples, batch_size, seed=seed, **options)


def check_fittable(name: str, options: Mapping[str, Any]) -> None:
    """Refuse an order that cannot be fitted to any loader, judged only by its name and options.

    Raises:
        OSError: The name is that of a config file, and it cannot be read.
        ValueError: There is no such order, or it has other options, or batches of random sizes.
    """
    if is_file(name):
        order = read_order(name)
        build_order(name, order.num_samples, order.batch_size, **options)  # which says what is wrong
        if getattr(order, "batch_sizes_vary", False):
            raise ValueError(f"order should have batches of the loaders' sizes, but those of {name} have random ones")
        return
    if name not in ORDERS or set(options) - set(ORDERS[name].options):
        build_order(name, 1, 1, **options)  # which says what is wrong
    if "drop_last" in options:
        raise ValueError(
            f"drop_last should not be given, for each loader has its own, but got {options['drop_last']!r}"
        )
    entry = ORDERS[name]
    if missing := [need for need in entry.needs if need not in options]:
        raise ValueError(f"{missing[0]} should be given for the order {name!r}, which needs it, but got none")
    if entry.batch_sizes_vary:
        raise ValueError(f"order should have batches of the loaders' sizes, but those of {name!r} have random ones")
