"""The network of exponential linear units (Clevert et al., 2015)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models import arguments, layout
from replenish.lab.models.dropout import Dropout
from replenish.lab.models.initialise import he_normal
from replenish.lab.models.residual_units import global_average

#: The stacks, as Clevert et al. write them in section 4.3: (layers, units, receptive field).
STACKS = (
    ((1, 384, 3),),
    ((1, 384, 1), (1, 384, 2), (2, 640, 2)),
    ((1, 640, 1), (3, 768, 2)),
    ((1, 768, 1), (2, 896, 2)),
    ((1, 896, 3), (2, 1024, 2)),
    ((1, 1024, 1), (1, 1152, 2)),
    ((1, 1152, 1),),
)
#: Dropout after the last layer of each stack (their section 4.2).
DROPOUT = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.0)


class Stack(nn.Sequential):
    """Convolutions with ELUs, dropout, then 2x2 max pooling as long as there is something to pool."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the stack's output."""
        for layer in self:
            x = layer(x)
        # A 32x32 image is one pixel after five stacks, an 8x8 one after three: later stacks do not pool.
        return F.max_pool2d(x, 2, ceil_mode=True) if x.shape[-1] > 1 else x


class ELUNetwork(nn.Module):
    """Eighteen convolutions with ELUs, without normalization; row "Exponential Linear Units" of table 2.

    They form seven stacks, and each stack ends in dropout and 2x2 max pooling. A 1x1 convolution then
    gives each class's logit.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        width: Multiplies every stack's units; 1 is the published network, less is for small machines.
        dropout: Multiplies every stack's dropout.

    Example:
        >>> import torch
        >>> net = ELUNetwork(in_channels=1, num_classes=10, width=0.05).eval()
        >>> net(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self, in_channels: int = 3, num_classes: int = 10, *, width: float = 1.0, dropout: float = 1.0
    ) -> None:
        super().__init__()
        channels, num_classes = arguments.shape(in_channels, num_classes)
        width = arguments.fraction("width", width, above=0.0)
        dropout = arguments.fraction("dropout", dropout)
        self.stacks = nn.Sequential()
        for groups, drop in zip(STACKS, DROPOUT, strict=True):
            stack = Stack()
            for layers, units, kernel in groups:
                for _ in range(layers):
                    if kernel == 2:
                        # Keeps the image's size. torch's padding="same" would warn of the copy it makes.
                        stack.append(nn.ZeroPad2d((0, 1, 0, 1)))
                    wide = max(1, round(units * width))
                    stack.append(nn.Conv2d(channels, wide, kernel, padding=1 if kernel == 3 else 0))
                    stack.append(nn.ELU(inplace=True))
                    channels = wide
            stack.append(Dropout(drop * dropout))
            self.stacks.append(stack)
        self.classifier = nn.Conv2d(channels, num_classes, 1)
        he_normal(self, "fan_in")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images (batch, in_channels, height, width)."""
        return global_average(self.classifier(self.stacks(layout.fast(images))))
