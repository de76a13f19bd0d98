"""Orders from names, from configs and from config files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from replenish import checks
from replenish.draws import derived_seed
from replenish.orders.cursor import CursorOrder, from_json, to_json
from replenish.orders.mixture import Mixture
from replenish.orders.rebatched import FittedOrder
from replenish.orders.registry import ORDERS, OrderEntry
from replenish.orders.skipping import Skipping


def is_file(name: object) -> bool:
    """Return whether the name of an order is the path of a config file."""
    return isinstance(name, str) and name.endswith(".json")


def build_order(name: str, num_samples: int, batch_size: int, *, seed: int = 0, **options: Any) -> CursorOrder:
    """Return the order with this name in `ORDERS`.

    Args:
        name: One of the names of `ORDERS`.
        num_samples: How many samples there are.
        batch_size: How many samples each step draws, over all processes.
        seed: Chooses the draws.
        **options: Further arguments of the order. Unknown ones raise an error.

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
    """Raise an error if an order fits no loader, judged only by its name and options.

    Raises:
        OSError: The name is the path of a config file that cannot be read.
        ValueError: There is no such order, or it has no such options, or its batches have random sizes.
    """
    if is_file(name):
        order = read_order(name)
        build_order(name, order.num_samples, order.batch_size, **options)  # raises the error that names the fault
        if getattr(order, "batch_sizes_vary", False):
            raise ValueError(f"order should have batches of the loaders' sizes, but those of {name} have random ones")
        return
    if name not in ORDERS or set(options) - set(ORDERS[name].options):
        build_order(name, 1, 1, **options)  # raises the error that names the fault
    if "drop_last" in options:
        raise ValueError(
            f"drop_last should not be given, for each loader has its own, but got {options['drop_last']!r}"
        )
    entry = ORDERS[name]
    if missing := [need for need in entry.needs if need not in options]:
        raise ValueError(f"{missing[0]} should be given for the order {name!r}, which needs it, but got none")
    if entry.batch_sizes_vary:
        raise ValueError(f"order should have batches of the loaders' sizes, but those of {name!r} have random ones")


def order_from_config(config: Mapping[str, Any], **facts: Any) -> CursorOrder:
    """Return the order that a config describes.

    Args:
        config: What `order.config()` returned, or the state of a sampler, which has the same fields and more.
        **facts: The arrays that a config names only by their checksums: `labels`, `weights`, `lengths`, `shard_size`
            or `sequence`.

    Raises:
        TypeError: `config` is not a dict.
        ValueError: There is no such order, an array is missing, or an array differs from the config's.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(10, 4, seed=3, drop_last=True)
        >>> order_from_config(order.config()) == order
        True
    """
    if not isinstance(config, Mapping):
        raise TypeError(f"config should be a dict that config() returned, but got a {type(config).__name__}")
    by_class = {entry.order_class.__name__: entry for entry in ORDERS.values()}
    kind = config.get("order")
    if not isinstance(kind, str) or kind not in {*COMPOSED, *by_class}:
        raise ValueError(f"order should be the name of one of replenish's orders, but the config has {kind!r}")
    order = COMPOSED[kind](config, facts) if kind in COMPOSED else _listed(by_class[kind], config, facts)
    if "loader_last_batch_size" in config:  # an order that `exec` or `reorder` fitted to a loader
        order = FittedOrder(order, int(config["steps"]), int(config["loader_last_batch_size"]))
    for name, value in order.config().items():
        if kind in COMPOSED and (name not in config or name in ("of", "orders")):
            continue  # a config written by hand may leave out derived entries, and inner orders were checked already
        found = config.get(name, "missing")
        if (to_json(found) if isinstance(found, (list, dict)) else found) != value:
            raise ValueError(f"{name} is {found!r} in the config, but what it names has {value!r}")
    return order


def read_order(path: str | Path, **facts: Any) -> CursorOrder:
    """Return the order that a JSON file describes: a config as `config()` returns it, or a shorter one written by hand.

    In a file written by hand, the lists of a mixture may be JSON lists, an inner order may be a JSON object, and
    derived entries (`num_samples`, `stream`, a seed of 0) may be missing.

    Args:
        path: The file.
        **facts: As in `order_from_config`.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file does not hold JSON, or does not describe an order.

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "mix.json")
        >>> _ = path.write_text(json.dumps({"order": "Mixture", "sizes": [90, 10], "weights": [3, 1], "batch_size": 8}))
        >>> read_order(path).source_counts(10)
        [60, 20]
    """
    try:
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path} should hold the config of an order as JSON, but is garbled") from None
    if not isinstance(config, dict):
        kind = type(config).__name__
        raise ValueError(f"{path} should hold the config of an order as a JSON object, but holds a {kind}")
    return order_from_config(config, **facts)


def order_of_file(path: str | Path, num_samples: int, batch_size: int, *, seed: int = 0, **options: Any) -> CursorOrder:
    """Return the order that a config file describes, with the sizes and the seed of a training.

    This is how `exec` and `compare` take a mixture: the file has the sizes of the datasets and their weights, and the
    training has the batch size and the seed. Inner orders get seeds derived from this seed.

    Raises:
        ValueError: The order has another number of samples, or several batch sizes.
    """
    if options:
        raise ValueError(f"{next(iter(options))} should be in {path}, which names the whole order")
    config = read_order(path).config()
    order = order_from_config(_refitted(config, batch_size, seed, str(path)))
    if isinstance(order, Skipping) and getattr(order, "last_batch_size", batch_size) != batch_size:
        raise ValueError(
            f"{path} should skip steps of an order without short batches, which would come in the middle of an epoch; "
            f"take drop_last, or a batch size that divides {order.num_samples}, but got batch_size={batch_size}"
        )
    if order.num_samples != num_samples:
        raise ValueError(
            f"{path} should name an order of the {num_samples} samples there are, but its order has {order.num_samples}"
        )
    return order


def _refitted(config: Mapping[str, Any], batch_size: int, seed: int, path: str) -> dict[str, Any]:
    """Return a config with another batch size and seed, also in its inner orders."""
    if config["order"] == "Rebatched":
        raise ValueError(f"{path} should leave the batch size to the training, but names a rebatched order")
    changed = {**config, "batch_size": batch_size, "seed": seed}
    if "of" in changed:
        changed["of"] = _refitted(from_json("of", changed["of"]), batch_size, seed, path)
    if orders := from_json("orders", changed.get("orders")):
        # Each keeps its batch size, which a mixture ignores.
        changed["orders"] = [
            own and {**own, "seed": derived_seed(seed, "source", number)} for number, own in enumerate(orders)
        ]
    return changed


def _listed(entry: OrderEntry, config: Mapping[str, Any], facts: Mapping[str, Any]) -> CursorOrder:
    """Return an order that `ORDERS` lists."""
    kind = entry.order_class.__name__
    if missing := [name for name in ("num_samples", "batch_size", "seed") if name not in config]:
        raise ValueError(f"{missing[0]} should be in the config of an order, but it has {', '.join(sorted(config))}")
    if unknown := [name for name in facts if name not in entry.options]:
        raise ValueError(f"{unknown[0]} should not be given for {kind}, which has no such option")
    options = {name: _option(entry.order_class, name, config, facts) for name in entry.options}
    sizes = {name: config[name] for name in ("num_samples", "batch_size", "seed")}
    return entry.order_class(**sizes, **options)


def _mixture(config: Mapping[str, Any], facts: Mapping[str, Any]) -> CursorOrder:
    if facts:
        raise ValueError(f"{next(iter(facts))} should not be given for a mixture, whose orders name their own arrays")
    named = {name: from_json(name, config[name]) for name in ("sizes", "weights", "stages", "orders") if name in config}
    if named.get("orders") is not None:
        if not isinstance(named["orders"], list):
            raise ValueError(f"orders in the config should be a list, but got {named['orders']!r}")
        named["orders"] = [each if each is None else order_from_config(each) for each in named["orders"]]
    sizes, weights = _required(named, "sizes", "Mixture"), _required(named, "weights", "Mixture")
    options = {name: named[name] for name in ("stages", "orders") if name in named}
    return Mixture(sizes, weights, _required(config, "batch_size", "Mixture"), seed=config.get("seed", 0), **options)


def _skipping(config: Mapping[str, Any], facts: Mapping[str, Any]) -> CursorOrder:
    inner = order_from_config(from_json("of", _required(config, "of", "Skipping")), **facts)
    return Skipping(inner, from_json("ranges", _required(config, "ranges", "Skipping")))


def _rebatched(config: Mapping[str, Any], facts: Mapping[str, Any]) -> CursorOrder:
    inner = order_from_config(from_json("of", _required(config, "of", "Rebatched")), **facts)
    batch_size, at_step = _required(config, "batch_size", "Rebatched"), _required(config, "at_step", "Rebatched")
    return inner.rebatched(batch_size, at_step)


COMPOSED: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], CursorOrder]] = {
    "Mixture": _mixture,
    "Skipping": _skipping,
    "Rebatched": _rebatched,
}


def _required(config: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in config:
        raise ValueError(f"{name} should be in the config of a {kind}, but is missing")
    return config[name]


def _option(
    order_class: type[CursorOrder], name: str, config: Mapping[str, int | str], facts: Mapping[str, Any]
) -> Any:
    """Return an argument of an order, from its config or from `facts`."""
    default = inspect.signature(order_class).parameters[name].default
    if name in facts:
        return facts[name]
    value = config.get(name, default)
    if value is inspect.Parameter.empty:
        raise ValueError(f"{name} should be in the config of a {order_class.__name__}, but is missing")
    if isinstance(value, str) and value.startswith("sha256:"):
        raise ValueError(f"{name} should be given too, since the config has only its checksum ({value[:19]}...)")
    if isinstance(default, bool):
        return bool(value)
    return None if value == "sizes" else value  # `Stratified` writes None as "sizes"
