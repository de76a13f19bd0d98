"""Devices and processes: how Lightning Fabric starts them, and how they exchange values and end."""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import Tensor, nn

from replenish.lab.config import Hardware

T = TypeVar("T")


def start(hardware: Hardware, precision: str, network: nn.Module) -> Fabric:
    """Start all processes, and return Fabric; raise for an accelerator that is not available."""
    alone = hardware.devices * hardware.num_nodes == 1
    # In a network that drops branches at random, some parameters have no gradient in some steps.
    drops_branches = any(getattr(module, "survival", 1.0) < 1.0 for module in network.modules())
    strategy: Any = "auto" if alone else DDPStrategy(find_unused_parameters=drops_branches)
    # torch warns of 1x1 convolutions, whose gradients can have two layouts, which are the same in memory.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides", UserWarning)
    try:
        fabric = Fabric(
            accelerator=hardware.accelerator,
            devices=hardware.devices,
            num_nodes=hardware.num_nodes,
            strategy=strategy,
            precision=precision,  # type: ignore[arg-type]
        )
    except Exception as error:  # Fabric and torch raise many kinds of exceptions for a missing device
        here = ["cpu", *(["cuda"] * torch.cuda.is_available()), *(["mps"] * torch.backends.mps.is_available())]
        raise ValueError(
            f"accelerator={hardware.accelerator!r} with devices={hardware.devices} cannot be used here, where there is "
            f"{', '.join(here)}: {str(error).splitlines()[0]}"
        ) from error
    if fabric.device.type == "mps" and precision == "64-true":
        raise ValueError("precision should be another than '64-true' on Apple's GPUs, which have no 64-bit floats")
    fabric.launch()
    torch.set_num_threads(hardware.threads)  # Fabric may have set it
    if fabric.world_size > 1:
        atexit.unregister(_leave)  # registered once, also after several runs
        atexit.register(_leave)
    return fabric


def _leave() -> None:
    """Close the connection to the other processes, one of whose threads would abort the interpreter at its exit."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def on_first(fabric: Fabric, action: Callable[[], T]) -> T:
    """Call `action` in the first process only, and return its value, or raise its exception, in all processes."""
    if fabric.world_size == 1:
        return action()
    outcome: tuple[Any, BaseException | None] = (None, None)
    if fabric.is_global_zero:
        try:
            outcome = (action(), None)
        except Exception as error:
            outcome = (None, error)
    value, raised = fabric.broadcast(outcome)
    if raised is not None:
        raise raised
    return value


def agreed(fabric: Fabric, value: Tensor, how: str) -> Tensor:
    """Return the sum, minimum or maximum over all processes."""
    return value if fabric.world_size == 1 else fabric.all_reduce(value.clone(), reduce_op=how)  # type: ignore[return-value]


def gathered(fabric: Fabric, value: Tensor) -> list[Tensor]:
    """Return the values of all processes, in the order of their ranks."""
    if fabric.world_size == 1:
        return [value]
    own = value.to(fabric.device)
    values = [torch.empty_like(own) for _ in range(fabric.world_size)]
    torch.distributed.all_gather(values, own)
    return [value.cpu() for value in values]
