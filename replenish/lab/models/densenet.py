"""Densely connected networks (Huang et al., 2016): DenseNet and DenseNet-BC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from replenish import checks
from replenish.lab.models.layers import (
    Dropout,
    check_shape,
    fast_layout,
    global_average,
    he_normal,
    units_per_stage,
)


class NormalizedConv(nn.Module):
    """BN, ReLU, a convolution and perhaps dropout: the only building block of the network."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(in_channels)
        self.conv = nn.Conv2d(in_channels, out_channels, kernel, padding=kernel // 2, bias=False)
        self.dropout = Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, which has the input's height and width."""
        return self.dropout(self.conv(F.relu(self.bn(x), inplace=True)))


class DenseLayer(nn.Sequential):
    """A layer that appends `growth` channels to its input.

    With `recompute`, the backward pass computes the layer again, so its normalized input is not kept, as in the
    memory-efficient DenseNets of Pleiss et al. (2017). The result is the same, bit for bit.
    """

    def __init__(self, in_channels: int, growth: int, bottleneck: bool, dropout: float, recompute: bool) -> None:
        if bottleneck:
            # Four times the growth, as in section 3 of Huang et al.
            first = NormalizedConv(in_channels, 4 * growth, 1, dropout)
            super().__init__(first, NormalizedConv(4 * growth, growth, 3, dropout))
        else:
            super().__init__(NormalizedConv(in_channels, growth, 3, dropout))
        self.recompute = recompute

    def forward(self, x: Tensor) -> Tensor:
        """Return the input, followed by the new channels."""
        if self.recompute and self.training:
            new = checkpoint(self._new_channels, x, use_reentrant=False, context_fn=self._contexts)
        else:
            new = self._new_channels(x)
        return torch.cat((x, new), dim=1)

    def _new_channels(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), self._with_still_statistics()

    @contextmanager
    def _with_still_statistics(self) -> Iterator[None]:
        """Do not update the running statistics: the first computation has updated them."""
        norms = [module for module in self.modules() if isinstance(module, nn.BatchNorm2d)]
        before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
        for norm in norms:
            norm.momentum, norm.num_batches_tracked = 0.0, None
        try:
            yield
        finally:
            for norm, (momentum, count) in zip(norms, before, strict=True):
                norm.momentum, norm.num_batches_tracked = momentum, count


class DenseNet(nn.Module):
    """A network in which every layer of a block reads the channels of all earlier layers; rows "DenseNet", "DN".

    It has three dense blocks of equal length, with a 1x1 convolution and 2x2 average pooling between them, then BN,
    ReLU, the mean over the image and a linear layer. DenseNet-BC has a 1x1 bottleneck before each 3x3 convolution,
    halves the channels between blocks, and starts with twice the growth rate. The plain network does neither and starts
    with 16 channels. The paper trains DenseNet-BC 190-40, as its 25.6M parameters show (section 3.1 writes "DenseNet").

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 4 with the bottleneck, 3n + 4 without.
        growth: Channels that a layer adds.
        bottleneck: Whether a 1x1 convolution precedes each 3x3 convolution.
        dropout: Probability of dropping a value after a convolution. Huang et al. use 0.2, and only for images that are
            not augmented.
        recompute: Whether the backward pass computes the dense layers again. This takes less memory and about a third
            more time; the result is the same.

    Example:
        >>> import torch
        >>> net = DenseNet(in_channels=1, num_classes=10, depth=10, growth=4)
        >>> net(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        *,
        depth: int = 190,
        growth: int = 40,
        bottleneck: bool = True,
        dropout: float = 0.0,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        bottleneck, recompute = checks.boolean("bottleneck", bottleneck), checks.boolean("recompute", recompute)
        layers = units_per_stage(depth, layers=6 if bottleneck else 3, outside=4)
        growth = checks.integer("growth", growth, minimum=1)

        channels = 2 * growth if bottleneck else 16
        self.features = nn.Sequential(nn.Conv2d(in_channels, channels, 3, padding=1, bias=False))
        for block in range(3):
            if block:
                kept = channels // 2 if bottleneck else channels
                self.features.append(NormalizedConv(channels, kept, 1, dropout))
                self.features.append(nn.AvgPool2d(2))
                channels = kept
            for _ in range(layers):
                self.features.append(DenseLayer(channels, growth, bottleneck, dropout, recompute))
                channels += growth
        self.tail = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.tail(self.features(fast_layout(images)))))
