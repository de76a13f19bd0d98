"""Residual networks for small images: ResNet, with stochastic depth, and Wide ResNet."""

from __future__ import annotations

import itertools
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models.layers import (
    check_fraction,
    check_shape,
    fast_layout,
    global_average,
    he_normal,
    units_per_stage,
)
from replenish.lab.models.residual_units import (
    UNITS,
    ModuleMaker,
    Original,
    PaddedShortcut,
    activation,
    normalized_projection,
    three_stages,
)

SHORTCUTS: dict[str, ModuleMaker] = {"pad": PaddedShortcut, "projection": normalized_projection}


class StochasticDepthUnit(Original):
    """The original unit, whose branch is left out of a training step with probability 1 - `survival`.

    One draw decides for the whole batch (Huang et al., 2016, section 3), so a branch left out costs nothing and its
    normalization's statistics do not change. In evaluation the branch is weighted by `survival`.

    The draw comes from torch's CPU generator on every device, so that no step waits for the device. A branch left out
    has no gradients: `DistributedDataParallel` needs `find_unused_parameters=True`.
    """

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, shortcut: ModuleMaker, survival: float
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
    layer that makes 6n + 2 layers: n = 18 for 110, n = 200 for 1202. With stochastic depth, unit l of L survives a
    training step with probability 1 - (l / L)(1 - survival), Huang et al.'s linear decay. Their networks and the
    paper's rows have survival = 0.5.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 2.
        survival: The last unit's probability of survival; 1 is the plain network.
        shortcut: `"pad"`, without parameters as in He et al.'s CIFAR networks, or `"projection"`, with
            a 1x1 convolution and BN.

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
        shortcut: str = "pad",
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        units = units_per_stage(depth, layers=6, outside=2)
        survival = check_fraction("survival", survival, above=0.0)
        make = SHORTCUTS[checks.one_of("shortcut", shortcut, SHORTCUTS)]

        stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, *activation(Original.stem, 16))
        alive = (1.0 - position / (3 * units) * (1.0 - survival) for position in itertools.count(1))

        def unit(inside: int, outside: int, stride: int) -> nn.Module:
            return StochasticDepthUnit(inside, outside, stride, make, next(alive))

        self.stages, channels = three_stages(16, 16, units, unit)
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.stages(self.stem(fast_layout(images)))))


class WideResNet(nn.Module):
    """A residual network, wide instead of deep (Zagoruyko and Komodakis, 2016): the paper's main one (section 3.1).

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
        unit: One of the five units in `replenish.lab.models.residual_units`.
        dropout: Probability of dropping a value between a unit's two convolutions. The paper's probability of
            keeping it, 0.7, is 0.3 here.

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
        dropout = check_fraction("dropout", dropout, below=1.0)

        stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, *activation(kind.stem, 16))
        self.stages, channels = three_stages(16, 16 * width, units, partial(kind, dropout=dropout))
        self.tail = nn.Sequential(*activation(kind.tail, channels))
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.tail(self.stages(self.stem(fast_layout(images))))))
