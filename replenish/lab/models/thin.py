"""The thin networks of 19 layers: FitNet and the highway network."""

from __future__ import annotations

from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models.layers import (
    Dropout,
    check_shape,
    fast_layout,
    global_average,
    glorot_uniform,
    he_normal,
)

#: Channels of FitNet's three stages.
FITNET_STAGES = ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6)


class Maxout(nn.Module):
    """The maximum of `pieces` linear maps, for each unit (Goodfellow et al., 2013)."""

    def __init__(self, linear: nn.Module, pieces: int) -> None:
        super().__init__()
        self.linear, self.pieces = linear, pieces

    def forward(self, x: Tensor) -> Tensor:
        """Return the maximum over the pieces, which are consecutive in dimension 1."""
        return reduce(torch.maximum, self.linear(x).chunk(self.pieces, dim=1))


class FitNet(nn.Module):
    """The 19-layer student network "FitNet 4" (Romero et al., 2014); row "FitNet" of table 2.

    Seventeen 3x3 maxout convolutions of two pieces in three stages, 2x2 max pooling after the first two
    and over the whole image after the third; then 500 maxout units of five pieces and a linear layer, as
    in the authors' published definition. Their hints from a wide teacher network belong to the training and are left
    out here.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.

    Example:
        >>> import torch
        >>> FitNet(in_channels=1, num_classes=10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, in_channels: int = 3, num_classes: int = 10) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        self.features = nn.Sequential()
        for index, stage in enumerate(FITNET_STAGES):
            if index:
                self.features.append(nn.MaxPool2d(2))
            for channels in stage:
                self.features.append(Maxout(nn.Conv2d(in_channels, 2 * channels, 3, padding=1), pieces=2))
                in_channels = channels
        self.hidden = Maxout(nn.Linear(in_channels, 5 * 500), pieces=5)
        self.classifier = nn.Linear(500, num_classes)
        he_normal(self, "fan_in")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(self.hidden(torch.amax(self.features(fast_layout(images)), dim=(2, 3))))


#: (channels, highway layers) of the highway network's three stages.
HIGHWAY_STAGES = ((32, 4), (80, 5), (128, 5))
#: The bias at which the gates start.
GATE_BIAS = -2.0


class HighwayConv(nn.Module):
    """T(x) H(x) + (1 - T(x)) x, where a learned gate T weighs the output of a layer H against its input x.

    The gate's bias starts negative, so that at first the layer mostly passes its input through (section 2.2 of
    Srivastava et al.). One convolution computes H and T together.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 2 * channels, 3, padding=1)

    def start(self) -> None:
        """Draw the weights of H and T as if they were separate convolutions, and set the gate's bias."""
        for part in self.conv.weight.detach().chunk(2):
            nn.init.xavier_uniform_(part)
        nn.init.constant_(self.conv.bias.detach()[self.conv.in_channels :], GATE_BIAS)  # type: ignore[union-attr]

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        layer, gate = self.conv(x).chunk(2, dim=1)
        return torch.lerp(x, F.relu(layer), torch.sigmoid(gate))


class HighwayNetwork(nn.Module):
    """The 19-layer network "Highway 2" (Srivastava et al., 2015); row "Highway Networks" of table 2.

    Three stages with 2x2 max pooling between them, each of a plain 3x3 convolution, which sets the width, and four or
    five highway layers. Then a 1x1 convolution to 100 channels, the mean over the image and a linear layer. Widths,
    dropout and the gate's bias follow the authors' published CIFAR definitions.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        dropout: Probability of dropping a value of the image, after each pooling and before the last layer.

    Example:
        >>> import torch
        >>> HighwayNetwork(in_channels=1, num_classes=10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, in_channels: int = 3, num_classes: int = 10, *, dropout: float = 0.2) -> None:
        super().__init__()
        channels, num_classes = check_shape(in_channels, num_classes)
        self.features = nn.Sequential(Dropout(dropout))
        for index, (width, layers) in enumerate(HIGHWAY_STAGES):
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
                module.start()

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(self.dropout(global_average(self.features(fast_layout(images)))))
