"""Networks of plain stacked convolutions: Network in Network, All-CNN, deeply-supervised nets, the ELU network."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks
from replenish.lab.models.layers import Dropout, check_shape, fast_layout, global_average, he_normal


def mlpconv(in_channels: int, kernel: int, channels: tuple[int, int, int]) -> nn.Sequential:
    """Return a convolution and two 1x1 convolutions, each with a ReLU. The latter are an MLP at every pixel."""
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
    """Network in Network (Lin et al., 2013): three mlpconv blocks, pooling and dropout between them; row 1 of table 2.

    There is no linear layer. The last block has a channel for each class, and the logit of a class is the mean of its
    channel over the image (Lin et al., section 3.2). Widths, kernels, poolings and the ReLU on the last channels follow
    the authors' published CIFAR-10 definition.

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
        in_channels, num_classes = check_shape(in_channels, num_classes)
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
        return global_average(self.features(fast_layout(images)))


class AllCNN(nn.Module):
    """All-CNN-C (Springenberg et al., 2014): convolutions with stride 2 instead of pooling; row "All-CNN" of table 2.

    Nine convolutions, each followed by a ReLU (Springenberg et al., tables 1 and 2, model C): 3x3 with 96
    channels, 3x3 with 192, then an unpadded 3x3 and two 1x1, the last with a channel for each class.
    Dropout is 0.2 on the image and 0.5 after the two convolutions with stride 2 (their section 3.1).

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        image_size: Height and width of the images; below 9 pixels the seventh convolution is padded,
            since its input has fewer than 3x3 pixels.
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
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        image_size = checks.integer("image_size", image_size, minimum=1)

        def conv(inside: int, outside: int, kernel: int, stride: int, padding: int) -> list[nn.Module]:
            return [nn.Conv2d(inside, outside, kernel, stride, padding), nn.ReLU(inplace=True)]

        seventh_padding = 0 if image_size >= 9 else 1
        self.features = nn.Sequential(
            Dropout(0.2),
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
        return global_average(self.features(fast_layout(images)))


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
        """Return the block's output, and the companion's logits if `with_companion`."""
        x = self.conv(x)
        companion: Tensor | None = self.companion(x.flatten(1)) if with_companion else None
        return self.mlp(x), companion


class DeeplySupervisedNet(nn.Module):
    """Network in Network with a companion classifier on each block (Lee et al., 2015); row "Deeply-Supervised Net".

    Each of the three companions is a linear layer on the block's whole feature map with a squared hinge
    loss, as in the authors' published CIFAR-10 definition. They are used in training only. `forward(images)`
    returns the logits, as in every network here. `forward(images, targets)` also returns the companions' loss times
    `companion_weight`, which `training_loss` adds to the main one. Training may change the weight: Lee et al. let it
    decay.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        image_size: Height and width of the images, on which the companions' sizes depend.
        dropout: Probability of dropping a value after each pooling.

    Example:
        >>> import torch
        >>> net = DeeplySupervisedNet(in_channels=1, num_classes=10, image_size=8)
        >>> images, targets = torch.zeros(2, 1, 8, 8), torch.tensor([3, 7])
        >>> net(images).shape, net(images, targets)[1].shape
        (torch.Size([2, 10]), torch.Size([]))
    """

    #: Tells `training_loss` that `forward` also takes the targets.
    has_companion_loss = True

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 10,
        image_size: int = 32,
        *,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        in_channels, num_classes = check_shape(in_channels, num_classes)
        side = checks.integer("image_size", image_size, minimum=5)
        self.companion_weight = 0.1
        self.blocks = nn.ModuleList()
        plan = ((5, (192, 160, 96)), (5, (192, 192, 192)), (3, (192, 192, num_classes)))
        for kernel, channels in plan:
            self.blocks.append(SupervisedBlock(in_channels, kernel, channels, num_classes, side))
            # Pooling of 3 with stride 2 halves the image, since its size is rounded up, as in Caffe.
            in_channels, side = channels[-1], side // 2
        self.between = nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, ceil_mode=True), Dropout(dropout))
        he_normal(self, "fan_in")

    def forward(self, images: Tensor, targets: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        """Return the logits or, with targets, the logits and the companions' weighted loss."""
        companions = images.new_zeros(())
        x = fast_layout(images)
        for index, block in enumerate(self.blocks):
            x = self.between(x) if index else x
            x, companion_logits = block(x, with_companion=targets is not None)
            if targets is not None:
                companions = companions + squared_hinge(companion_logits, targets)
        logits = global_average(x)
        return logits if targets is None else (logits, self.companion_weight * companions)


#: The ELU network's stacks, as Clevert et al. write them in section 4.3: (layers, units, receptive field).
ELU_STACKS = (
    ((1, 384, 3),),
    ((1, 384, 1), (1, 384, 2), (2, 640, 2)),
    ((1, 640, 1), (3, 768, 2)),
    ((1, 768, 1), (2, 896, 2)),
    ((1, 896, 3), (2, 1024, 2)),
    ((1, 1024, 1), (1, 1152, 2)),
    ((1, 1152, 1),),
)
#: Dropout after the last layer of each stack (their section 4.2).
ELU_DROPOUT = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.0)


class Stack(nn.Sequential):
    """Convolutions with ELUs, dropout, then 2x2 max pooling if the image has more than one pixel."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the stack's output."""
        for layer in self:
            x = layer(x)
        # A 32x32 image has one pixel after five stacks, an 8x8 image after three. Later stacks do not pool.
        return F.max_pool2d(x, 2, ceil_mode=True) if x.shape[-1] > 1 else x


class ELUNetwork(nn.Module):
    """Eighteen convolutions with exponential linear units (Clevert et al., 2015); row "Exponential Linear Units".

    They form seven stacks without normalization, each ending in dropout and 2x2 max pooling. A 1x1 convolution then
    computes each class's logit.

    Args:
        in_channels: Channels of the images.
        num_classes: Number of classes.
        width: Multiplies every stack's units. 1 is the published network; smaller values suit small machines.
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
        channels, num_classes = check_shape(in_channels, num_classes)
        width = checks.real("width", width, maximum=1.0, positive=True)
        dropout = checks.real("dropout", dropout, maximum=1.0)
        self.stacks = nn.Sequential()
        for groups, drop in zip(ELU_STACKS, ELU_DROPOUT, strict=True):
            stack = Stack()
            for layers, units, kernel in groups:
                for _ in range(layers):
                    if kernel == 2:
                        # Keeps the image's size. With padding="same", torch would warn that it makes a copy.
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
        return global_average(self.classifier(self.stacks(fast_layout(images))))
