"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T")

#: Far more than any comparison needs: a typing error should not ask for a million runs.
MOST_SEEDS = 10_000


def complete_experiment(incomplete: str) -> list[str]:
    """Return the experiments, and groups of experiments, whose names begin with the text."""
    from replenish.lab.experiments import names

    return [name for name in names() if name.startswith(incomplete)]


def complete_orders(incomplete: str) -> list[str]:
    """Return the completions of an order's name, or of the last name in a list such as "reshuffling,sr"."""
    from replenish.orders import ORDERS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ORDERS if name.startswith(last)]


def complete_model(incomplete: str) -> list[str]:
    """Return the experiments' networks whose names begin with the text; a list of all networks would import torch."""
    from replenish.lab.experiments import SCALES, configs

    known = {config.model for scale in SCALES for config in configs(scale).values()}
    return sorted(name for name in known if name.startswith(incomplete))


def _one_of(*values: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


Scale = Annotated[
    str,
    typer.Option(
        help="full (the paper's), mini (two CPU cores) or digits (seconds)",
        autocompletion=_one_of("full", "mini", "digits"),
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="the folder in which every run gets a folder")]
Orders = Annotated[str, typer.Option(help="the orders to compare", autocompletion=complete_orders)]
Seeds = Annotated[str, typer.Option(help="how many seeds (5 is 0 to 4), or which (0,3,7 or 5-9)")]
Jobs = Annotated[int, typer.Option(min=1, help="how many runs at once, each in its own process")]
Accelerator = Annotated[
    str,
    typer.Option(help="auto, cpu, cuda or mps", autocompletion=_one_of("auto", "cpu", "cuda", "mps")),
]
# torchrun sets the two variables for the processes that it starts.
Devices = Annotated[
    int,
    typer.Option(min=1, envvar="LOCAL_WORLD_SIZE", help="devices per run, which divide each batch among them"),
]
NumNodes = Annotated[
    int,
    typer.Option(
        "--num-nodes",
        min=1,
        envvar="GROUP_WORLD_SIZE",
        help="machines of one run; start it with torchrun",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="32-true, 16-mixed, bf16-mixed, bf16-true or 64-true",
        autocompletion=_one_of("32-true", "16-mixed", "bf16-mixed", "bf16-true", "64-true"),
    ),
]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of each process")]
Compile = Annotated[bool, typer.Option("--compile", help="use torch.compile")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="also write TensorBoard events")]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for a program")]

# `what` and `when` take a source of steps (a run, a record or a state), or an order by its name and sizes.
Source = Annotated[
    Path | None,
    typer.Argument(
        help="a run's folder, a record of `exec --record`, or a file with a sampler's saved state or an order's config "
        "(JSON, or as torch.save wrote it)"
    ),
]
Record = Annotated[
    Path | None,
    typer.Option(help="also record the samples of each batch in this file, for `replenish what` and `when`"),
]
RecordedLoader = Annotated[
    int | None, typer.Option("--loader", help="with a record: which training loader, counted from 0")
]
OrderName = Annotated[
    str | None,
    typer.Option("--order", help="without SOURCE: a name of `replenish list orders`", autocompletion=complete_orders),
]
NumSamples = Annotated[int | None, typer.Option("--num-samples", "-N", help="without SOURCE: how many samples")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", "-B", help="without SOURCE: samples per step")]
OrderSeed = Annotated[int | None, typer.Option("--seed", help="without SOURCE: the order's seed; 0 by default")]
OrderOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="an option of the order: pool_size=1000, labels=labels.npy"),
]
DatasetName = Annotated[
    str | None, typer.Option("--dataset", help="the dataset of an order or a state, to print labels and files")
]


def parse_order_options(words: list[str]) -> dict[str, int | str]:
    """Return the options of an order from NAME=VALUE; whole numbers, true and false become int and bool.

    Example:
        >>> parse_order_options(["pool-size=100", "sequence=identity", "staggered=true"])
        {'pool_size': 100, 'sequence': 'identity', 'staggered': True}
    """
    found: dict[str, int | str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"--option should be NAME=VALUE, such as sequence=identity, but got {word!r}")
        name = name.replace("-", "_")
        if name in found:
            raise ValueError(f"--option should have one value for {name}, but got {' and '.join(words)}")
        plain = {"true": True, "false": False}.get(value, value)
        found[name] = int(value) if re.fullmatch(r"-?[0-9]+", value) else plain
    return found


def order_options(words: list[str] | None) -> dict[str, Any]:
    """Return the options of an order from NAME=VALUE, with arrays in place of the .npy files that hold them."""
    return {name: option_value(name, value) for name, value in parse_order_options(words or []).items()}


def option_value(name: str, value: int | str) -> Any:
    """Return an option's value, or the array in it if it names a .npy file."""
    if not isinstance(value, str) or not value.endswith(".npy"):
        return value
    import numpy as np

    try:
        return np.load(value, allow_pickle=False)
    except (EOFError, ValueError):
        raise ValueError(f"--option {name} should name a file of one array of numbers, but got {value}") from None


def parse_seeds(text: str) -> list[int]:
    """Return seeds from "5" (the first five), "0,3,7" (these), "3-3" (only seed 3) or "0-2,7".

    Example:
        >>> parse_seeds("3"), parse_seeds("0,3,7"), parse_seeds("3-3"), parse_seeds("0-2,7")
        ([0, 1, 2], [0, 3, 7], [3], [0, 1, 2, 7])
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,19}(-[0-9]{1,19})?", part) for part in parts) or parts == ["0"]:
        raise ValueError(f"--seeds should be how many, such as 5, or which, such as 0,3,7 or 5-9, but got {text!r}")
    from replenish import checks  # after the check: importing numpy takes time

    if len(parts) == 1 and parts[0].isdigit():
        return list(range(checks.integer("--seeds", int(parts[0]), minimum=1, maximum=MOST_SEEDS)))
    seeds: list[int] = []
    for part in parts:
        first, _, last = part.partition("-")
        named = range(checks.seed(int(first)), checks.seed(int(last or first)) + 1)
        if not 0 < len(named) <= MOST_SEEDS:
            raise ValueError(
                f"--seeds should have ranges of 1 to {MOST_SEEDS} seeds, the smallest first, but got {part!r}"
            )
        seeds += named
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"--seeds should name every seed once, but got {text!r}")
    return seeds


def by_order(flag: str, words: Sequence[str], orders: Sequence[str], read: Callable[[str], T]) -> T | dict[str, T]:
    """Return one value for all orders, or a value for each, from the words after a repeated flag.

    The words are at most one plain value and any number of ORDER=VALUE. `read` converts the text of a value.

    Example:
        >>> by_order("--learning-rate", ["0.1", "srs=0.2"], ["reshuffling", "srs"], float)
        {'reshuffling': 0.1, 'srs': 0.2}
    """
    found: dict[str, T] = {}
    plain: list[T] = []
    for word in words:
        order, equals, text = word.partition("=") if "=" in word else ("", "", word)
        try:
            value = read(text)
        except ValueError:
            raise ValueError(f"{flag} should be a value, or ORDER=VALUE, but got {word!r}") from None
        if equals and (order not in orders or order in found):
            raise ValueError(f"{flag} should have one value for each of {', '.join(orders)}, but got {word!r}")
        if equals:
            found[order] = value
        else:
            plain.append(value)
    if len(plain) > 1:
        raise ValueError(f"{flag} should have one value for all orders, but got {' and '.join(words)}")
    if not found:
        return plain[0]
    return {order: plain[0] for order in orders if plain} | found
