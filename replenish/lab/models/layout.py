"""How a network lays its images out in memory."""

from __future__ import annotations

import torch
from torch import Tensor


def fast(images: Tensor) -> Tensor:
    """Return the images channels last on a CPU, where that is the faster layout, else as they are.

    Convolutions keep the layout of what they are given, so one call in front of the network decides for
    all of it; `docs/models.md` has the measurements. Values are the same up to rounding. On other devices
    the choice is the caller's (`model.to(memory_format=...)`), since there it depends on the precision.

    Images that come from an array (batch, height, width, channels) by `permute` are channels last
    already, and are not copied.
    """
    if images.device.type != "cpu" or images.ndim != 4 or images.stride(1) == 1:
        return images
    # Not `contiguous`: with one channel that sees nothing to do, and the convolutions then choose the other layout.
    return images.clone(memory_format=torch.channels_last)
