"""Deeply-supervised nets (Lee et al., 2015)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models import arguments, layout
from replenish.lab.models.dropout import Dropout
from replenish.lab.models.initialise import he_normal
from replenish.lab.models.residual_units import global_average


def squared_hinge(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the squared hinge loss of one-against-all classifiers, averaged over images and classes."""
    signs = F.one_hot(targets, logits.shape[1]).to(logits.dtype) * 2 - 1
    return F.relu(1 - signs * logits).square().mean()


class SupervisedBlock(nn.Module):
    """An mlpconv block whose first convolution, before its ReLU, feeds a separate classifier."""

    def __init__(
        self, in_channels: int, kernel: int, channels: tuple[int, int, int], num_classes: int, side: int
    ) -> None:
        super().__init__()
        spatial, hidden, out = channels
        self.conv = nn.Conv2d(in_channels, spatial, kernel, padding=kernel // 2)
        self.mlp = nn.Sequential(
            nn.ReLU(), nn.Conv2d(spatial, hidden, 1), nn.ReLU(inplace=True), nn.Conv2d(hidden, out, 1)
        )
        self.companion = nn.Linear(spatial * side * side, num_classes)

    def forward(self, x: Tensor, with_companion: bool) -> tuple[Tensor, Tensor | None]:
        """Return the block's output, and the companion's logits if asked."""
        x = self.conv(x)
        companion: Tensor | None = self.companion(x.flatten(1)) if with_companion else None
        return self.mlp(x), companion


class DeeplySupervisedNet(nn.Module):
    """Network in Network with a companion classifier on each block; row "Deeply-Supervised Net" of table 2.

    Each of the three companions is a linear layer on the block's whole feature map with a squared hinge
    loss, as in the authors' published CIFAR-10 definition; they serve training only. `forward(images)`
    gives the logits, like every network here; `forward(images, targets)` gives also the companions'
    weighted loss, to be added to the main one: `training_loss` does so for any network.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        image_size: Height and width of the images, on which the companions' sizes depend.
        dropout: Probability of dropping a value after each pooling.
        companion_weight: The weight of the companions' loss, also an attribute that may be changed during
            training (Lee et al. let it decay).

    Example:
        >>> import torch
        >>> net = DeeplySupervisedNet(in_channels=1, num_classes=10, image_size=8)
        >>> images, targets = torch.zeros(2, 1, 8, 8), torch.tensor([3, 7])
        >>> net(images).shape, net(images, targets)[1].shape
        (torch.Size([2, 10]), torch.Size([]))
    """

    #: Tells `training_loss` that `forward` takes the targets too.
    has_companion_loss = True

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        image_size: int = 32,
        *,
        dropout: float = 0.5,
        companion_weight: float = 0.1,
    ) -> None:
        super().__init__()
        in_channels, num_classes = arguments.shape(in_channels, num_classes)
        side = checks.integer("image_size", image_size, minimum=5)
        dropout = arguments.fraction("dropout", dropout, below=1.0)
        self.companion_weight = arguments.fraction("companion_weight", companion_weight)
        self.blocks = nn.ModuleList()
        plan = ((5, (192, 160, 96)), (5, (192, 192, 192)), (3, (192, 192, num_classes)))
        for kernel, channels in plan:
            self.blocks.append(SupervisedBlock(in_channels, kernel, channels, num_classes, side))
            # A pooling of 3 with stride 2, its size rounded up as Caffe does, leaves half of the image.
            in_channels, side = channels[-1], side // 2
        self.between = nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True), Dropout(dropout))
        he_normal(self, "fan_in")

    def forward(self, images: Tensor, targets: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """Return the logits, and with targets the companions' weighted loss too."""
        companions = images.new_zeros(())
        x = layout.fast(images)
        for index, block in enumerate(self.blocks):
            x = self.between(x) if index else x
            x, companion_logits = block(x, with_companion=targets is not None)
            if targets is not None:
                companions = companions + squared_hinge(companion_logits, targets)
        logits = global_average(x)
        return logits if targets is None else (logits, self.companion_weight * companions)
