"""Residual networks for small images: ResNet, with stochastic depth, and Wide ResNet with each of five units.

The units are from figure 4 of He et al., "Identity Mappings in Deep Residual Networks" (2016). All five have the same
two 3x3 convolutions and differ in where normalization, ReLU and addition are:

    original                  conv BN ReLU conv BN      + ReLU
    bn_after_addition         conv BN ReLU conv         + BN ReLU
    relu_before_addition      conv BN ReLU conv BN ReLU +
    relu_only_preactivation   ReLU conv BN ReLU conv BN +
    full_preactivation        BN ReLU conv BN ReLU conv +

Additions and ReLUs are done in place where autograd does not need the overwritten tensor: on a CPU, memory limits the
speed of a training step as much as arithmetic does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models.layers import Dropout, check_shape, fast_layout, global_average, he_normal, units_per_stage


class PaddedShortcut(nn.Module):
    """The shortcut without parameters: it takes every `stride`-th pixel and adds channels of zeros.

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
    """Return a 1x1 convolution: option B of the section that `PaddedShortcut` cites, as in Zagoruyko's code."""
    return nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)


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
    """Figure 4(b): the second normalization is after the addition; the paper's "WRN"."""

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
    """Figure 4(d): the ReLU is before the convolution, the normalization after it."""

    # The first unit begins with the ReLU. He et al.'s appendix adds the activation after the last addition.
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
    # The first unit begins with BN and ReLU. For the activation after the last one, see `ReLUOnlyPreactivation`.
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
    """Return three stages of `units` units, and the last width. Stages 2 and 3 double the width and halve the image."""
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


class StochasticDepthUnit(Original):
    """The original unit, whose branch is left out of a training step with probability 1 - `survival`.

    One draw decides for the whole batch (Huang et al., 2016, section 3), so a branch that is left out takes no time and
    does not change the statistics of its normalization. In evaluation the branch is weighted by `survival`.

    The draw comes from torch's CPU generator on every device, so that no step waits for the device. A branch that is
    left out has no gradients, so `DistributedDataParallel` needs `find_unused_parameters=True`.
    """

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, survival: float, shortcut: ModuleMaker
    ) -> None:
        super().__init__(in_channels, out_channels, stride, shortcut=shortcut)
        self.survival = survival

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        if self.survival == 1.0:
            return super().forward(x)
        shortcut: Tensor = self.shortcut(x)
        if not self.training:
            return F.relu(shortcut + self.survival * self.branch(x), inplace=True)
        if torch.rand((), device="cpu").item() < self.survival:
            return F.relu(self.branch(x).add_(shortcut), inplace=True)
        # Not in place: `shortcut` may be the input, the result of a ReLU that autograd still needs.
        return F.relu(shortcut)

    def extra_repr(self) -> str:
        """Return the survival probability, for `print(model)`."""
        return f"survival={self.survival:.4g}"


class ResNet(nn.Module):
    """The CIFAR network of He et al. (2016, section 4.2); rows "ResNet" of the paper's table 2.

    A 3x3 convolution to 16 channels, then three stages of n original units with 16, 32 and 64 channels. With the last
    layer these are 6n + 2 layers: n = 18 for 110, n = 200 for 1202. With stochastic depth, unit l of L survives a
    training step with probability 1 - (l / L)(1 - survival), Huang et al.'s linear decay. In their networks and the
    paper's rows, survival is 0.5.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 2.
        survival: The last unit's probability of survival; with 1, the network has no stochastic depth.

    Example:
        >>> import torch
        >>> net = ResNet(num_classes=100, depth=8, survival=0.5).eval()
        >>> net(torch.zeros(2, 3, 16, 16)).shape
        torch.Size([2, 100])
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        *,
        depth: int = 110,
        survival: float = 1.0,
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        units = units_per_stage(depth, layers=6, outside=2)
        survival = checks.real("survival", survival, maximum=1.0, positive=True)

        stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, *activation(Original.stem, 16))
        alive = (1.0 - position / (3 * units) * (1.0 - survival) for position in itertools.count(1))

        def unit(inside: int, outside: int, stride: int) -> nn.Module:
            return StochasticDepthUnit(inside, outside, stride, next(alive), PaddedShortcut)

        self.stages, channels = three_stages(16, 16, units, unit)
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.stages(self.stem(fast_layout(images)))))


class WideResNet(nn.Module):
    """A wide residual network (Zagoruyko and Komodakis, 2016), the paper's main network (section 3.1).

    A 3x3 convolution to 16 channels is followed by three stages of n units with 16k, 32k and 64k channels. The second
    and the third halve the image. The mean over the image and a linear layer come last. The depth counts 2n
    convolutions per stage, the three shortcuts that change the shape, and the first convolution: 6n + 4. The paper
    calls the network with `unit="original"` "Wide ResNet". It calls the one with `unit="bn_after_addition"` "WRN", and
    recommends it for SRS.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 4.
        width: The widening factor k.
        unit: One of the five units in `replenish.lab.models.resnet`.
        dropout: Probability of dropping a value between a unit's two convolutions. The paper states the probability of
            keeping one, 0.7, which is `dropout=0.3`.

    Example:
        >>> import torch
        >>> net = WideResNet(in_channels=1, num_classes=10, depth=10, width=1, unit="bn_after_addition")
        >>> net(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        *,
        depth: int = 28,
        width: int = 10,
        unit: str = "bn_after_addition",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        units = units_per_stage(depth, layers=6, outside=4)
        width = checks.integer("width", width, minimum=1)
        kind = UNITS[checks.one_of("unit", unit, UNITS)]

        stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, *activation(kind.stem, 16))
        self.stages, channels = three_stages(16, 16 * width, units, partial(kind, dropout=dropout))
        self.tail = nn.Sequential(*activation(kind.tail, channels))
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.tail(self.stages(self.stem(fast_layout(images))))))
