"""Convolutional highway networks (Srivastava et al., 2015)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models import arguments, layout
from replenish.lab.models.dropout import Dropout
from replenish.lab.models.initialise import glorot_uniform
from replenish.lab.models.residual_units import global_average

#: (channels, highway layers) of the three stages of the 19-layer network.
STAGES = ((32, 4), (80, 5), (128, 5))


class HighwayConv(nn.Module):
    """T(x) H(x) + (1 - T(x)) x: a learned gate T chooses between a layer H and its input.

    The gate's bias starts negative, so that at first the layer mostly passes its input on (section 2.2 of
    Srivastava et al.). One convolution computes H and T together.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 2 * channels, 3, padding=1)

    def start(self, gate_bias: float) -> None:
        """Set the weights as if H and T were separate convolutions, and the gate's bias."""
        for part in self.conv.weight.detach().chunk(2):
            nn.init.xavier_uniform_(part)
        nn.init.constant_(self.conv.bias.detach()[self.conv.in_channels :], gate_bias)  # type: ignore[union-attr]

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        layer, gate = self.conv(x).chunk(2, dim=1)
        return torch.lerp(x, F.relu(layer), torch.sigmoid(gate))


class HighwayNetwork(nn.Module):
    """The 19-layer highway network, "Highway 2" there; row "Highway Networks" of table 2.

    Three stages, each a plain 3x3 convolution that sets the width and four or five highway layers, with
    2x2 max pooling between them; then a 1x1 convolution to 100 channels, the mean over the image and a linear
    layer. Widths, dropout and the gate's bias follow the authors' published CIFAR definitions.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        dropout: Probability of dropping a value of the image, after each pooling and before the last layer.
        gate_bias: The bias at which the gates start.

    Example:
        >>> import torch
        >>> HighwayNetwork(in_channels=1, num_classes=10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self, in_channels: int = 3, num_classes: int = 10, *, dropout: float = 0.2, gate_bias: float = -2.0
    ) -> None:
        super().__init__()
        channels, num_classes = arguments.shape(in_channels, num_classes)
        dropout = arguments.fraction("dropout", dropout, below=1.0)
        if isinstance(gate_bias, bool) or not isinstance(gate_bias, int | float):
            raise TypeError(f"gate_bias should be a number, but got {gate_bias!r}")
        self.features = nn.Sequential(Dropout(dropout))
        for index, (width, layers) in enumerate(STAGES):
            if index:
                self.features.extend([nn.MaxPool2d(2), Dropout(dropout)])
            self.features.extend([nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)])
            self.features.extend(HighwayConv(width) for _ in range(layers))
            channels = width
        self.features.extend([nn.Conv2d(channels, 100, 1), nn.ReLU(inplace=True)])
        self.dropout = Dropout(dropout)
        self.classifier = nn.Linear(100, num_classes)
        glorot_uniform(self)
        for module in self.modules():
            if isinstance(module, HighwayConv):
                module.start(gate_bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(self.dropout(global_average(self.features(layout.fast(images)))))
