"""Code that the networks share: dropout, initial weights, memory layout, training loss, checks of arguments, a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish import checks


class Dropout(nn.Dropout):
    """Inverted dropout (Srivastava et al., 2014), as `nn.Dropout`, from 16 random bits per value on a CPU.

    torch's CPU kernel draws one float after the other, which takes about a seventh of a training step of WRN-16-2. Here
    one 64-bit draw decides four values. The probability is rounded to a multiple of 2**-16, and the scale belongs to
    the rounded one, so the expectation is exact. The draws come from torch's generator. On other devices, and under
    `torch.compile`, it is `nn.Dropout`.

    Example:
        >>> layer = Dropout(0.3)
        >>> layer(torch.ones(2, 3)).shape, layer.eval()(torch.ones(2)).tolist()
        (torch.Size([2, 3]), [1.0, 1.0])
    """

    def __init__(self, p: float) -> None:
        super().__init__(checks.real("dropout", p, maximum=1.0))
        if p == 1:
            raise ValueError(f"dropout should be below 1, but got {p}")

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`; in training, drop values at random and scale up the others."""
        dropped = round(self.p * 2**16)
        dense = x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)
        usual = x.device.type != "cpu" or not dense or dropped in (0, 2**16) or torch.compiler.is_compiling()
        if not self.training or usual:
            return super().forward(x)
        count = x.numel()
        draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        # The bits are in the order of x in memory, so that the mask has the same layout as x.
        bits = draws.view(torch.int16)[:count].as_strided(x.shape, x.stride())
        mask = (bits >= dropped - 2**15).to(x.dtype)
        return x * mask.mul_(2**16 / (2**16 - dropped))


def global_average(x: Tensor) -> Tensor:
    """Return the mean over all pixels: (batch, channels)."""
    return torch.mean(x, dim=(2, 3))


def fast_layout(images: Tensor) -> Tensor:
    """Return the images channels last on a CPU, where that layout is faster, and unchanged on other devices.

    Convolutions keep the layout of their input, so one call before the network sets the layout of all of it.
    `benchmarks/README.md` has the measurements. Values are the same up to rounding. On other devices the better layout
    depends on the precision, and the caller chooses it with `model.to(memory_format=...)`.

    Images that `permute` made from an array (batch, height, width, channels) are channels last already. They are not
    copied.
    """
    if images.device.type != "cpu" or images.ndim != 4 or images.stride(1) == 1:
        return images
    # `contiguous` would not copy images of one channel, which count as contiguous in both layouts.
    return images.clone(memory_format=torch.channels_last)


def he_normal(model: nn.Module, mode: Literal["fan_out", "fan_in"] = "fan_out") -> None:
    """Draw the weights of every convolution from He et al.'s normal (2015, section 2.2), and set every bias to zero.

    The paper does not mention initial weights. We follow the published code of an architecture's authors, if there is
    any; `docs/deviations.md` lists our other choices. The published code of ResNet, Wide ResNet, DenseNet and
    Shake-Shake divides by the fan *out*: with batch normalization after every convolution the forward scale does not
    matter, and this keeps the backward scale. Networks without normalization need the forward scale: `"fan_in"`.

    Linear weights keep torch's uniform distribution of bound 1/sqrt(fan in), as in those authors' code. Batch
    normalization keeps its ones and zeros.
    """
    for module in model.modules():
        # Filling a meta tensor has no effect and takes long, so it is skipped.
        if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
        if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def glorot_uniform(model: nn.Module) -> None:
    """Draw every weight from Glorot and Bengio's uniform (2010, equation 16), and set every bias to zero."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def training_loss(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    criterion: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
) -> tuple[Tensor, Tensor]:
    """Return (loss, logits) of a training step; the loss includes the companion losses, if the network has any.

    Args:
        model: Any network of this package, or any module from images to logits.
        images: The batch.
        targets: The classes.
        criterion: The main loss.

    Example:
        >>> from replenish.lab.models import DeeplySupervisedNet
        >>> net = DeeplySupervisedNet(in_channels=1, num_classes=10, image_size=8)
        >>> loss, logits = training_loss(net, torch.zeros(2, 1, 8, 8), torch.tensor([3, 7]))
        >>> loss.backward()
    """
    # Wrappers for distributed training have the network as their attribute `module`.
    if getattr(getattr(model, "module", model), "has_companion_loss", False):
        logits, companions = model(images, targets)
        return criterion(logits, targets) + companions, logits
    logits = model(images)
    return criterion(logits, targets), logits


def weights_sha256(network: nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def check_shape(in_channels: object, num_classes: object) -> tuple[int, int]:
    """Check and return the two arguments that every network takes."""
    return (
        checks.integer("in_channels", in_channels, minimum=1),
        checks.integer("num_classes", num_classes, minimum=2),
    )


def units_per_stage(depth: object, *, layers: int, outside: int) -> int:
    """Return n of `depth = layers * n + outside`; if there is none, raise an error that names the nearest depths.

    The depth is the number of layers with weights, as the architectures' papers count them. One more unit in every
    stage adds `layers` to it.
    """
    depth = checks.integer("depth", depth, minimum=layers + outside)
    units, rest = divmod(depth - outside, layers)
    if rest:
        nearest = f"{depth - rest} or {depth - rest + layers}"
        raise ValueError(f"depth should be {layers}n + {outside} (nearest: {nearest}), but got {depth}")
    return units
