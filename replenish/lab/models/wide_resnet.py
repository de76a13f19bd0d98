"""Wide residual networks (Zagoruyko and Komodakis, 2016), with any of the five residual units."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from replenish import checks
from replenish.lab.models import arguments, layout
from replenish.lab.models.initialise import he_normal
from replenish.lab.models.residual_units import UNITS, activation, global_average, three_stages


class WideResNet(nn.Module):
    """A residual network made wide instead of deep: the paper's main architecture (section 3.1).

    A 3x3 convolution to 16 channels is followed by three stages of n units with 16k, 32k and 64k channels,
    the second and the third halving the image; then the mean over the image and a linear layer. The depth
    counts 2n convolutions a stage, the three shortcuts that change the shape, and the first convolution:
    6n + 4. The paper calls the network with `unit="original"` "Wide ResNet", and the one with
    `unit="bn_after_addition"`, which it recommends for SRS, "WRN".

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        depth: 6n + 4.
        width: The widening factor k.
        unit: One of the five units in `replenish.lab.models.residual_units`.
        dropout: Probability of dropping a value between a unit's two convolutions; the paper's keep
            probability of 0.7 is 0.3 here.

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
        in_channels, num_classes = arguments.shape(in_channels, num_classes)
        units = arguments.units_per_stage(depth, layers=6, outside=4)
        width = checks.integer("width", width, minimum=1)
        kind = UNITS[checks.one_of("unit", unit, UNITS)]
        dropout = arguments.fraction("dropout", dropout, below=1.0)

        stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, *activation(kind.stem, 16))
        self.stages, channels = three_stages(16, 16 * width, units, partial(kind, dropout=dropout))
        self.tail = nn.Sequential(*activation(kind.tail, channels))
        self.classifier = nn.Linear(channels, num_classes)
        he_normal(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(global_average(self.tail(self.stages(self.stem(layout.fast(images))))))
