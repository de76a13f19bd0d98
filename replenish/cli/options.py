"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from replenish.lab.config import Hardware

T = TypeVar("T")


def complete_experiment(incomplete: str) -> list[str]:
    """Return the experiments and groups of experiments that begin so, for the shell's completion."""
    from replenish.lab.experiments import names

    return [name for name in names() if name.startswith(incomplete)]


def complete_orders(incomplete: str) -> list[str]:
    """Return the orders that the last of a list may become, with those before it."""
    from replenish.orders import ORDERS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ORDERS if name.startswith(last)]


def _one_of(*values: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


Scale = Annotated[
    str,
    typer.Option(
        help="full (the paper's), mini (two CPU cores) or digits (seconds)",
        autocompletion=_one_of("full", "mini", "digits"),
    ),
]
RunsFolder = Annotated[Path, typer.Option("--runs", help="the folder that the runs' folders are in")]
Orders = Annotated[str, typer.Option(help="the orders to compare", autocompletion=complete_orders)]
Seeds = Annotated[str, typer.Option(help="how many seeds (5 is 0 to 4), or which (0,3,7)")]
Jobs = Annotated[int, typer.Option(min=1, help="runs at once, each a process or a job of its own")]
Accelerator = Annotated[
    str,
    typer.Option(help="auto, cpu, cuda or mps", autocompletion=_one_of("auto", "cpu", "cuda", "mps")),
]
# torchrun tells its processes how many they are.
Devices = Annotated[
    int,
    typer.Option(min=1, envvar="LOCAL_WORLD_SIZE", help="devices of one run, which share its batches"),
]
NumNodes = Annotated[
    int,
    typer.Option(
        "--num-nodes",
        min=1,
        envvar="GROUP_WORLD_SIZE",
        help="machines of one run; start it with torchrun, or --launcher slurm",
    ),
]
Precision = Annotated[str, typer.Option(help="32-true, 16-mixed, bf16-mixed, bf16-true or 64-true")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of each process")]
Compile = Annotated[bool, typer.Option("--compile", help="use torch.compile")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="write TensorBoard events as well")]
LauncherName = Annotated[
    str,
    typer.Option(
        "--launcher",
        help="local, slurm or ray",
        autocompletion=_one_of("local", "slurm", "ray"),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON, for a program")]


def parse_seeds(text: str) -> list[int]:
    """Return seeds from "5" (the first five: 0 to 4) or "0,3,7" (these).

    Example:
        >>> parse_seeds("3"), parse_seeds("0,3,7")
        ([0, 1, 2], [0, 3, 7])
    """
    from replenish import checks

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts) or parts == ["0"]:
        raise ValueError(f"--seeds should be how many, such as 5, or which, such as 0,3,7, but got {text!r}")
    numbers = [checks.seed(int(part)) for part in parts]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"--seeds should name every seed once, but got {text!r}")
    if len(numbers) == 1:
        return list(range(checks.integer("--seeds", numbers[0], minimum=1, maximum=10_000)))
    return numbers


def check_launcher(name: str, hardware: Hardware) -> None:
    """Refuse what no launcher of that name does.

    Raises:
        ValueError: There is no such launcher, or it cannot start so many processes.
    """
    from replenish.lab.launch import LAUNCHERS

    if name not in LAUNCHERS:
        raise ValueError(f"--launcher should be one of {', '.join(LAUNCHERS)}, but got {name!r}")
    if name == "ray" and hardware.devices * hardware.num_nodes > 1:
        raise ValueError(
            f"--launcher ray gives each run one process, but got --devices {hardware.devices} and --num-nodes "
            f"{hardware.num_nodes}; use --launcher slurm, or torchrun with --launcher local"
        )


def by_order(flag: str, words: Sequence[str], orders: Sequence[str], read: Callable[[str], T]) -> T | dict[str, T]:
    """Return a value for all orders, or one for each: of "0.1", or of "0.1" and "srs=0.2".

    Args:
        flag: The option, for messages.
        words: What was given: at most one plain value, and any number of ORDER=VALUE.
        orders: The orders that are compared.
        read: Makes a value of its text.

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
