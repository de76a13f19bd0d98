"""Network in Network (Lin et al., 2013)."""

from __future__ import annotations

from torch import Tensor, nn

from replenish.lab.models import arguments, layout
from replenish.lab.models.dropout import Dropout
from replenish.lab.models.initialise import he_normal
from replenish.lab.models.residual_units import global_average


def mlpconv(in_channels: int, kernel: int, channels: tuple[int, int, int]) -> nn.Sequential:
    """Return a convolution and two 1x1 convolutions, each with a ReLU: an MLP at every pixel."""
    spatial, hidden, out = channels
    return nn.Sequential(
        nn.Conv2d(in_channels, spatial, kernel, padding=kernel // 2),
        nn.ReLU(inplace=True),
        nn.Conv2d(spatial, hidden, 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(hidden, out, 1),
        nn.ReLU(inplace=True),
    )


class NetworkInNetwork(nn.Module):
    """Three mlpconv blocks with pooling and dropout between them, and no linear layer; row 1 of table 2.

    The last block has a channel for each class, whose mean over the image is the class's logit (Lin et
    al., section 3.2). Widths, kernels, poolings and the ReLU on the last channels are those of the
    authors' published CIFAR-10 definition.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        dropout: Probability of dropping a value after each pooling.

    Example:
        >>> import torch
        >>> NetworkInNetwork(in_channels=1, num_classes=10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, in_channels: int = 3, num_classes: int = 10, *, dropout: float = 0.5) -> None:
        super().__init__()
        in_channels, num_classes = arguments.shape(in_channels, num_classes)
        dropout = arguments.fraction("dropout", dropout, below=1.0)
        # Caffe rounds the size of a pooled image up, hence ceil_mode: 32 -> 16 -> 8 without padding.
        self.features = nn.Sequential(
            mlpconv(in_channels, 5, (192, 160, 96)),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Dropout(dropout),
            mlpconv(96, 5, (192, 192, 192)),
            nn.AvgPool2d(3, 2, ceil_mode=True),
            Dropout(dropout),
            mlpconv(192, 3, (192, 192, num_classes)),
        )
        he_normal(self, "fan_in")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return global_average(self.features(layout.fast(images)))
