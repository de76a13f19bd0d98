"""The all convolutional net (Springenberg et al., 2014)."""

from __future__ import annotations

from torch import Tensor, nn

from replenish import checks
from replenish.lab.models import arguments, layout
from replenish.lab.models.dropout import Dropout
from replenish.lab.models.initialise import he_normal
from replenish.lab.models.residual_units import global_average


class AllCNN(nn.Module):
    """All-CNN-C: convolutions with stride 2 where others pool; row "All-CNN" of table 2.

    Nine convolutions, each followed by a ReLU (Springenberg et al., tables 1 and 2, model C): 3x3 with 96
    channels, 3x3 with 192, then an unpadded 3x3 and two 1x1, the last with a channel for each class.
    Dropout is 0.2 on the image and 0.5 after the two convolutions with stride 2 (their section 3.1).

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        image_size: Height and width of the images; below 9 pixels the seventh convolution is padded,
            since it finds fewer than 3x3 pixels.
        input_dropout: Probability of dropping a value of the image.
        dropout: Probability of dropping a value after a convolution with stride 2.

    Example:
        >>> import torch
        >>> AllCNN(in_channels=1, num_classes=10, image_size=8)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        image_size: int = 32,
        *,
        input_dropout: float = 0.2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        in_channels, num_classes = arguments.shape(in_channels, num_classes)
        image_size = checks.integer("image_size", image_size, minimum=1)
        input_dropout = arguments.fraction("input_dropout", input_dropout, below=1.0)
        dropout = arguments.fraction("dropout", dropout, below=1.0)

        def conv(inside: int, outside: int, kernel: int, stride: int, padding: int) -> list[nn.Module]:
            return [nn.Conv2d(inside, outside, kernel, stride, padding), nn.ReLU(inplace=True)]

        seventh_padding = 0 if image_size >= 9 else 1
        self.features = nn.Sequential(
            Dropout(input_dropout),
            *conv(in_channels, 96, 3, 1, 1),
            *conv(96, 96, 3, 1, 1),
            *conv(96, 96, 3, 2, 1),
            Dropout(dropout),
            *conv(96, 192, 3, 1, 1),
            *conv(192, 192, 3, 1, 1),
            *conv(192, 192, 3, 2, 1),
            Dropout(dropout),
            *conv(192, 192, 3, 1, seventh_padding),
            *conv(192, 192, 1, 1, 0),
            *conv(192, num_classes, 1, 1, 0),
        )
        he_normal(self, "fan_in")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return global_average(self.features(layout.fast(images)))
