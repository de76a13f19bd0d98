"""The five residual units of He et al., "Identity Mappings in Deep Residual Networks" (2016), figure 4.

All five have the same two 3x3 convolutions and differ in the places of normalization, ReLU and addition:

    original                  conv BN ReLU conv BN      + ReLU
    bn_after_addition         conv BN ReLU conv         + BN ReLU
    relu_before_addition      conv BN ReLU conv BN ReLU +
    relu_only_preactivation   ReLU conv BN ReLU conv BN +
    full_preactivation        BN ReLU conv BN ReLU conv +

Additions and ReLUs are done in place where autograd does not need the overwritten tensor: on a CPU, memory limits a
training step as much as arithmetic does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models.layers import Dropout


class PaddedShortcut(nn.Module):
    """The shortcut without parameters: every `stride`-th pixel, then zeros for the new channels.

    Option A of He et al., "Deep Residual Learning" (2016), section 3.3, which their CIFAR networks use.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.new_channels, self.stride = out_channels - in_channels, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the subsampled, padded input."""
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.new_channels))


def projection(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    """Return a 1x1 convolution, option B of the same section, as in Zagoruyko and Komodakis's code."""
    return nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)


def normalized_projection(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    """Return a 1x1 convolution and BN, as usual where option B meets the original unit."""
    return nn.Sequential(projection(in_channels, out_channels, stride), nn.BatchNorm2d(out_channels))


#: Called with (in_channels, out_channels, stride).
ModuleMaker: TypeAlias = Callable[[int, int, int], nn.Module]


class ResidualUnit(nn.Module):
    """The parts of all five units: two convolutions with dropout between them, two normalizations, a shortcut.

    The first convolution and the shortcut have the stride. `shortcut` makes the shortcut if the shape changes.
    """

    #: Whether the first normalization is before the first convolution.
    normalizes_input = False
    #: The layers between the first convolution and the first unit, and those after the last unit.
    stem, tail = "BN ReLU", ""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stride: int = 1,
        dropout: float = 0.0,
        shortcut: ModuleMaker = projection,
    ) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels if self.normalizes_input else out_channels)
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.dropout = Dropout(dropout) if dropout else nn.Identity()
        self.changes_shape = stride != 1 or in_channels != out_channels
        self.shortcut = shortcut(in_channels, out_channels, stride) if self.changes_shape else nn.Identity()

    def middle(self, x: Tensor, bn: Callable[[Tensor], Tensor]) -> Tensor:
        """Return `x` after BN, ReLU, dropout and the second convolution, as in every unit."""
        return self.conv2(self.dropout(F.relu(bn(x), inplace=True)))


class Original(ResidualUnit):
    """Figure 4(a), the unit of He et al.'s first paper; the paper's "Wide ResNet"."""

    def branch(self, x: Tensor) -> Tensor:
        """Return the residual, before the addition."""
        return self.bn2(self.middle(self.conv1(x), self.bn1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        return F.relu(self.branch(x).add_(self.shortcut(x)), inplace=True)


class BNAfterAddition(ResidualUnit):
    """Figure 4(b): one normalization over the sum, shortcut included; the paper's "WRN"."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        total = self.middle(self.conv1(x), self.bn1).add_(self.shortcut(x))
        return F.relu(self.bn2(total), inplace=True)


class ReLUBeforeAddition(ResidualUnit):
    """Figure 4(c): the residual is never negative, so the signal can only grow."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        residual = F.relu(self.bn2(self.middle(self.conv1(x), self.bn1)), inplace=True)
        shortcut: Tensor = self.shortcut(x)
        return residual + shortcut  # Not in place: the ReLU's own backward needs its result.


class ReLUOnlyPreactivation(ResidualUnit):
    """Figure 4(d): the ReLU moves before the convolution, the normalization does not."""

    # The first unit begins with the ReLU; the extra activation after the last addition is in He et al.'s appendix.
    stem, tail = "BN", "ReLU"

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        active = F.relu(x)
        shortcut: Tensor = self.shortcut(active if self.changes_shape else x)
        residual: Tensor = self.bn2(self.middle(self.conv1(active), self.bn1))
        return residual.add_(shortcut)


class FullPreactivation(ResidualUnit):
    """Figure 4(e), He et al.'s proposal and the unit of Zagoruyko and Komodakis's published code."""

    normalizes_input = True
    # The first unit begins with BN and ReLU. For the last, see `ReLUOnlyPreactivation`.
    stem, tail = "", "BN ReLU"

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        active = F.relu(self.bn1(x), inplace=True)
        # Where the shape changes, the projection gets the activated input, as in Zagoruyko's code.
        shortcut: Tensor = self.shortcut(active) if self.changes_shape else x
        return self.middle(self.conv1(active), self.bn2).add_(shortcut)


def activation(names: str, channels: int) -> list[nn.Module]:
    """Return the named layers: "BN", "ReLU", "BN ReLU" or none. A ReLU overwrites its input only after BN."""
    layers: list[nn.Module] = [nn.BatchNorm2d(channels)] if "BN" in names else []
    return [*layers, nn.ReLU(inplace=bool(layers))] if "ReLU" in names else layers


def three_stages(channels: int, width: int, units: int, make: ModuleMaker) -> tuple[nn.Sequential, int]:
    """Return three stages of `units` units and their last width; each stage doubles the width and halves the image."""
    stages = nn.Sequential()
    for stage in range(3):
        members = nn.Sequential()
        for index in range(units):
            members.append(make(channels, width * 2**stage, 2 if stage and not index else 1))
            channels = width * 2**stage
        stages.append(members)
    return stages, channels


UNITS: dict[str, type[ResidualUnit]] = {
    "original": Original,
    "bn_after_addition": BNAfterAddition,
    "relu_before_addition": ReLUBeforeAddition,
    "relu_only_preactivation": ReLUOnlyPreactivation,
    "full_preactivation": FullPreactivation,
}
