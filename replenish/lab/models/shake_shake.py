"""Shake-Shake regularization of residual networks with two branches (Gastaldi, 2017)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models.layers import check_shape, fast_layout, global_average, he_normal, units_per_stage
from replenish.lab.models.resnet import three_stages


class _Mix(torch.autograd.Function):
    """alpha first + (1 - alpha) second, with beta instead of alpha in the gradient."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        ctx.save_for_backward(beta)
        return torch.lerp(second, first, alpha)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (beta,) = ctx.saved_tensors
        to_first = beta * grads[0]
        return to_first, grads[0] - to_first, None, None


class ShakeShake(nn.Module):
    """The weighted sum of two branches; in training, each image draws a weight in [0, 1) (Gastaldi, section 1.2).

    Args:
        backward_mode: The weight in the gradient: `"shake"` draws another one for each image, independent of the
            forward pass; `"even"` is one half.
    """

    def __init__(self, backward_mode: str = "shake") -> None:
        super().__init__()
        self.backward_mode = checks.one_of("backward_mode", backward_mode, ["shake", "even"])

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the mix; in evaluation with equal weights, which is the expectation."""
        if not self.training:
            return torch.lerp(second, first, 0.5)
        alpha = first.new_empty((len(first), 1, 1, 1)).uniform_()
        beta = torch.rand_like(alpha) if self.backward_mode == "shake" else torch.full_like(alpha, 0.5)
        return _Mix.apply(first, second, alpha, beta)  # type: ignore[no-untyped-call]


class ShiftedShortcut(nn.Module):
    """The shortcut that changes the shape: two 1x1 convolutions that sample different pixels.

    The second one reads the image shifted by one pixel right and down. So with stride 2 the two together read every
    second pixel, where a single one would read every fourth.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels // 2, 1, stride, bias=False)
        self.conv2 = nn.Conv2d(in_channels, out_channels - out_channels // 2, 1, stride, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the shortcut's output."""
        shifted = F.pad(x, (1, -1, 1, -1))
        return self.bn(torch.cat((self.conv1(x), self.conv2(shifted)), dim=1))


def branch(in_channels: int, out_channels: int, stride: int, cardinality: int | None) -> nn.Sequential:
    """Return one branch, from its first convolution to its last normalization.

    Without a cardinality it has two 3x3 convolutions. With one, it is ResNeXt's bottleneck, whose 3x3 convolution has
    `cardinality` groups of `out_channels / 4` channels.
    """
    if cardinality is None:
        kernels = [(out_channels, 3, stride, 1), (out_channels, 3, 1, 1)]
    else:
        inner = cardinality * out_channels // 4
        kernels = [(inner, 1, 1, 1), (inner, 3, stride, cardinality), (out_channels, 1, 1, 1)]
    layers: list[nn.Module] = []
    for channels, kernel, step, groups in kernels:
        layers += [nn.ReLU(inplace=True)] if layers else []
        padding = kernel // 2
        layers += [nn.Conv2d(in_channels, channels, kernel, step, padding, groups=groups, bias=False)]
        layers += [nn.BatchNorm2d(channels)]
        in_channels = channels
    return nn.Sequential(*layers)


class ShakeShakeUnit(nn.Module):
    """Two branches, mixed, and a shortcut."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, cardinality: int | None, mix: ShakeShake
    ) -> None:
        super().__init__()
        self.branch1 = branch(in_channels, out_channels, stride, cardinality)
        self.branch2 = branch(in_channels, out_channels, stride, cardinality)
        self.mix = mix
        self.shortcut: nn.Module | None = None
        if in_channels != out_channels or stride != 1:
            self.shortcut = ShiftedShortcut(in_channels, out_channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the unit's output."""
        active = F.relu(x)
        # As in Gastaldi's code, the identity takes the raw input, but a shortcut with weights the activated one.
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(active)
        return self.mix(self.branch1(active), self.branch2(active)) + shortcut


class ShakeShakeNet(nn.Module):
    """A residual network of two branches with Shake-Shake; rows "Shake-Shake Regularization" of table 2.

    It has a 3x3 convolution and BN, three stages, each of twice the width of the one before, then ReLU, the mean over
    the image and a linear layer. "26 2x96d" has depth 26 and two branches of width 96, with two 3x3 convolutions each,
    after a first convolution to 16 channels; both passes draw weights. "29 2x4x64d" has ResNeXt's bottleneck with
    cardinality 4 and width 64, after a first convolution to 64 channels, with `backward_mode="even"`.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 2; with a cardinality 9n + 2.
        width: Channels of the first stage's 3x3 convolutions, in each group.
        cardinality: Groups of ResNeXt's bottleneck, or None for branches of two 3x3 convolutions.
        backward_mode: See `ShakeShake`.

    Example:
        >>> import torch
        >>> net = ShakeShakeNet(in_channels=1, num_classes=10, depth=8, width=8).eval()
        >>> net(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        *,
        depth: int = 26,
        width: int = 96,
        cardinality: int | None = None,
        backward_mode: str = "shake",
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        width = checks.integer("width", width, minimum=2)
        if cardinality is not None:
            cardinality = checks.integer("cardinality", cardinality, minimum=1)
        units = units_per_stage(depth, layers=6 if cardinality is None else 9, outside=2)
        mix = ShakeShake(backward_mode)

        channels = 16 if cardinality is None else 64
        self.stem = nn.Sequential(nn.Conv2d(in_channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        # All units share the mix, which has no state: each call draws new weights.
        unit = partial(ShakeShakeUnit, cardinality=cardinality, mix=mix)
        self.stages, channels = three_stages(channels, width * (1 if cardinality is None else 4), units, unit)
        self.tail = nn.ReLU()
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.tail(self.stages(self.stem(fast_layout(images))))))
