"""The one way to get any network's training loss."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn


def training_loss(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    criterion: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
) -> tuple[Tensor, Tensor]:
    """Return (loss, logits) of a training step, companion losses included where the network has them.

    Args:
        model: Any network of this package, or any module from images to logits.
        images: The batch.
        targets: The classes.
        criterion: The main loss.

    Example:
        >>> import torch
        >>> from replenish.lab.models import DeeplySupervisedNet
        >>> net = DeeplySupervisedNet(in_channels=1, num_classes=10, image_size=8)
        >>> loss, logits = training_loss(net, torch.zeros(2, 1, 8, 8), torch.tensor([3, 7]))
        >>> loss.backward()
    """
    # Wrappers for distributed training keep the network itself in `module`.
    if getattr(getattr(model, "module", model), "has_companion_loss", False):
        logits, companions = model(images, targets)
        return criterion(logits, targets) + companions, logits
    logits = model(images)
    return criterion(logits, targets), logits
