"""How the networks' weights start.

The paper does not mention it. Where the architecture's own authors published theirs we follow them; the
rest is our choice, listed in `docs/deviations.md`.
"""

from __future__ import annotations

from typing import Literal

from torch import nn


def he_normal(model: nn.Module, mode: Literal["fan_out", "fan_in"] = "fan_out") -> None:
    """Set every convolution to He et al.'s normal (2015, section 2.2), every bias to zero.

    The published code of ResNet, Wide ResNet, DenseNet and Shake-Shake divides by the fan *out*: with
    batch normalization behind every convolution the forward scale does not matter, and this keeps the
    backward one. A network without normalization wants the forward scale kept, so it passes `"fan_in"`.

    Linear weights keep torch's uniform of bound 1/sqrt(fan in), which is what Torch's `nn.Linear` drew for
    those authors; batch normalization keeps its ones and zeros.
    """
    for module in model.modules():
        # Filling a meta tensor does nothing, at some length: a network that is only counted skips it.
        if isinstance(module, nn.Conv2d) and not module.weight.is_meta:
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
        if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def glorot_uniform(model: nn.Module) -> None:
    """Set every weight to Glorot and Bengio's uniform (2010, equation 16), every bias to zero."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
