"""What a network costs: parameters and multiply-adds, without memory or arithmetic.

Networks are built and run on torch's meta device, whose tensors have shapes and no values, so a network of
a hundred million parameters or of a thousand layers takes about a second to count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from replenish.lab.models.registry import build


@dataclass(frozen=True)
class Cost:
    """The size of a network.

    Args:
        parameters: Trained numbers, normalization's included.
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
                # It keeps the shape, is not counted, and takes nine tenths of the time on the meta device.
                setattr(module, child_name, nn.Identity())
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, in_channels, image_size, image_size, device="meta"))
    return Cost(size, counter.get_total_flops() // 2)  # torch counts a multiplication and its addition as two


def shapes_only(name: str, **options: Any) -> nn.Module:
    """Return a network on the meta device; the arguments are the same as for `build`."""
    # Not around the forward pass: as a context the device is looked up, slowly, at every operation.
    with torch.device("meta"):
        return build(name, **options)
