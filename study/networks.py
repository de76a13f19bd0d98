"""The networks of the second study's parts F, E and S: small residual networks for images of 32 x 32 pixels.

Their cost is chosen for one processor thread. All have a stem with a stride, three residual units with batch norm after
the addition, the mean over the image and a linear layer.
"""

from __future__ import annotations

from torch import Tensor, nn

from replenish.lab.models.layers import global_average, he_normal
from replenish.lab.models.resnet import BNAfterAddition


class StridedResNet(nn.Module):
    """A stem that reduces the image, and a residual unit for each of `widths`.

    Args:
        num_classes: Number of classes.
        stem: Channels, kernel size and stride of the first convolution.
        widths: Channels of each unit.
        strides: Stride of each unit.
    """

    def __init__(
        self, num_classes: int, *, stem: tuple[int, int, int], widths: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        super().__init__()
        channels, kernel, stride = stem
        padding = (kernel - stride + 1) // 2
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels, kernel, stride, padding, bias=False), nn.BatchNorm2d(channels), nn.ReLU()
        )
        self.units = nn.Sequential()
        for width, unit_stride in zip(widths, strides, strict=True):
            self.units.append(BNAfterAddition(channels, width, unit_stride))
            channels = width
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images."""
        return self.classifier(global_average(self.units(self.stem(images))))


def patches(num_classes: int) -> nn.Module:
    """Return a network that sees patches of 4 x 4 pixels: 6.9 million multiply-adds per image."""
    return StridedResNet(num_classes, stem=(48, 4, 4), widths=(48, 96, 192), strides=(1, 2, 2))


def overlapping(num_classes: int) -> nn.Module:
    """Return a network with a 3 x 3 convolution of stride 2 first: 6.4 million."""
    return StridedResNet(num_classes, stem=(24, 3, 2), widths=(48, 96, 192), strides=(2, 2, 2))


def wide(num_classes: int) -> nn.Module:
    """Return a network with the same first convolution and the widths 64, 128 and 256: 11.3 million."""
    return StridedResNet(num_classes, stem=(32, 3, 2), widths=(64, 128, 256), strides=(2, 2, 2))
