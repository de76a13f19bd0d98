"""What a network costs, parameters and multiply-adds, and the table of all networks.

Networks are built and run on torch's meta device, whose tensors have shapes but no values. So counting a network of a
hundred million parameters, or of a thousand layers, takes about a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from replenish.lab.models.registry import MODELS, PATTERNS, ModelEntry, build
from replenish.lab.show import Cell, Column, Table

#: Why a count cannot be the paper's, where we know or can guess.
_WHY = {
    "resnet-1202": "He et al. print 19.4M too; 10.2M is in the Wide ResNet paper's comparison",
    "resnet-1202-stochastic-depth": "as for resnet-1202",
    "wrn-70-10": "with 3x3 convolutions in the shortcuts it is 106.4M, but then wrn-28-10 is 38.6M; 70 = 6 x 11 + 4",
    "dsn": "companions included: 0.97M without them, at 10 classes",
}


@dataclass(frozen=True)
class Cost:
    """The size of a network.

    Args:
        parameters: Trained numbers, with those of normalization.
        multiply_adds: Multiplications, each with its addition, of all convolutions and linear layers in one
            image's forward pass in evaluation. Normalization, activations and poolings are not counted.
    """

    parameters: int
    multiply_adds: int


def parameters(model: nn.Module) -> int:
    """Return the number of trained parameters, each counted once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def cost(name: str, in_channels: int = 3, num_classes: int = 10, image_size: int = 32, **overrides: object) -> Cost:
    """Return the cost of a network of the table, by name; the arguments are the same as for `build`.

    Example:
        >>> cost("wrn-28-10")
        Cost(parameters=36479194, multiply_adds=5243328768)
    """
    model = shapes_only(name, in_channels=in_channels, num_classes=num_classes, image_size=image_size, **overrides)
    model.eval()
    size = parameters(model)
    for module in list(model.modules()):
        for child_name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                # It keeps the shape, is not counted, and would take nine tenths of the time on the meta device.
                setattr(module, child_name, nn.Identity())
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, in_channels, image_size, image_size, device="meta"))
    return Cost(size, counter.get_total_flops() // 2)  # torch counts a multiplication and its addition as two


def shapes_only(name: str, **options: Any) -> nn.Module:
    """Return a network on the meta device; the arguments are the same as for `build`."""
    # Only around `build`: as a context, the device is looked up at every operation, which is slow.
    with torch.device("meta"):
        return build(name, **options)


@dataclass(frozen=True)
class CountedNetwork:
    """A network, its parameters with 10 and with 100 classes, and its multiply-adds of one 32x32 image, 10 classes."""

    entry: ModelEntry
    parameters10: int
    parameters100: int
    multiply_adds: int

    @property
    def remark(self) -> str:
        """Where and how the counts differ from the paper's, or another remark, or ""."""
        printed, why = self.entry.paper_parameters, _WHY.get(self.entry.name, "")
        counted = [_millions(self.parameters10), _millions(self.parameters100)]
        differs = f"differs: we count {' or '.join(dict.fromkeys(counted))}" if printed not in ("", *counted) else ""
        return "; ".join(filter(None, (differs, why)))


COLUMNS = (
    Column("name", lambda network: Cell(network.entry.name, code=True), numeric=False),
    Column("row of the paper's table 2", lambda network: network.entry.paper_row, numeric=False, brief=False),
    Column("parameters, 10 classes", lambda network: f"{network.parameters10:,}"),
    Column("100 classes", lambda network: f"{network.parameters100:,}", brief=False),
    Column("the paper prints", lambda network: network.entry.paper_parameters),
    Column("multiply-adds", lambda network: f"{network.multiply_adds / 1e6:,.0f}M"),
    Column("remark", lambda network: network.remark, numeric=False, brief=False),
)


def models_table() -> Table:
    """Return every network of `MODELS`, what it costs, and what the paper prints."""
    networks = []
    for name, entry in MODELS.items():
        ten = cost(name)
        hundred = parameters(shapes_only(name, num_classes=100))
        networks.append((name, CountedNetwork(entry, ten.parameters, hundred, ten.multiply_adds)))
    return Table("models", "Networks", COLUMNS, networks, f"Other sizes: {', '.join(PATTERNS)}")


def _millions(count: int) -> str:
    """Return a count in millions, with as many digits as the paper prints."""
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e6:.2f}M"
