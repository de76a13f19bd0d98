"""FitNet, a thin deep network of maxout units (Romero et al., 2014)."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models import arguments, layout
from replenish.lab.models.initialise import he_normal

#: Channels of the three stages of the 19-layer network.
STAGES = ((32, 32, 32, 48, 48), (80,) * 6, (128,) * 6)


class Maxout(nn.Module):
    """The largest of `pieces` linear maps, unit by unit (Goodfellow et al., 2013)."""

    def __init__(self, linear: nn.Module, pieces: int) -> None:
        super().__init__()
        self.linear, self.pieces = linear, pieces

    def forward(self, x: Tensor) -> Tensor:
        """Return the maximum over the pieces, which lie one after the other in dimension 1."""
        return reduce(torch.maximum, self.linear(x).chunk(self.pieces, dim=1))


class FitNet(nn.Module):
    """The 19-layer student network of Romero et al., "FitNet 4" there; row "FitNet" of table 2.

    Seventeen 3x3 maxout convolutions of two pieces in three stages, 2x2 max pooling after the first two
    and over the whole image after the third; then 500 maxout units of five pieces and a linear layer, as
    in the authors' published definition. What makes their result, hints from a wide teacher network, is a
    way of training and not part of the network: it is left out here.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        pieces: Linear pieces of a convolution's units.
        hidden: Units of the fully connected layer.
        hidden_pieces: Linear pieces of each of them.

    Example:
        >>> import torch
        >>> FitNet(in_channels=1, num_classes=10)(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self, in_channels: int = 3, num_classes: int = 10, *, pieces: int = 2, hidden: int = 500, hidden_pieces: int = 5
    ) -> None:
        super().__init__()
        in_channels, num_classes = arguments.shape(in_channels, num_classes)
        pieces = checks.integer("pieces", pieces, minimum=1)
        hidden = checks.integer("hidden", hidden, minimum=1)
        hidden_pieces = checks.integer("hidden_pieces", hidden_pieces, minimum=1)
        self.features = nn.Sequential()
        for index, stage in enumerate(STAGES):
            if index:
                self.features.append(nn.MaxPool2d(2))
            for channels in stage:
                self.features.append(Maxout(nn.Conv2d(in_channels, channels * pieces, 3, padding=1), pieces))
                in_channels = channels
        self.hidden = Maxout(nn.Linear(in_channels, hidden * hidden_pieces), hidden_pieces)
        self.classifier = nn.Linear(hidden, num_classes)
        he_normal(self, "fan_in")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return self.classifier(self.hidden(torch.amax(self.features(layout.fast(images)), dim=(2, 3))))
