"""Dropout that costs a CPU little."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Inverted dropout (Srivastava et al., 2014), as `nn.Dropout`, from 16 random bits a value on a CPU.

    torch's CPU kernel draws a float for each value, one after the other: about a seventh of a training
    step of WRN-16-2. Here a 64-bit draw decides for four values. The probability is rounded to a multiple of 2**-16
    and the scale follows it, so the expectation is exact. The draws come from torch's own generator.
    Elsewhere than on a CPU, and under `torch.compile`, it is `nn.Dropout`.

    Example:
        >>> layer = Dropout(0.3)
        >>> layer(torch.ones(2, 3)).shape, layer.eval()(torch.ones(2)).tolist()
        (torch.Size([2, 3]), [1.0, 1.0])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`, in training with values dropped and the others scaled up."""
        dropped = round(self.p * 2**16)
        dense = x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)
        usual = x.device.type != "cpu" or not dense or dropped in (0, 2**16) or torch.compiler.is_compiling()
        if not self.training or usual:
            return super().forward(x)
        count = x.numel()
        draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        # In the order of x in memory, not of its indices: the mask then needs no other layout.
        bits = draws.view(torch.int16)[:count].as_strided(x.shape, x.stride())
        mask = (bits >= dropped - 2**15).to(x.dtype)
        return x * mask.mul_(2**16 / (2**16 - dropped))
