"""The networks of the paper's table 2 for `torch.hub`, with fresh weights; torch and numpy are enough.

In a copy of the repository, `torch.hub.load(".", "wrn-28-10", source="local", num_classes=100)` returns the paper's
WRN-28-10, with batch norm after the addition. `replenish list models` prints the names. `build` makes other sizes:
`torch.hub.load(".", "build", "wrn-16-4", source="local")`.
"""

from collections.abc import Callable

from torch import nn

from replenish.lab.models import MODELS as _MODELS
from replenish.lab.models import build

dependencies = ["numpy", "torch"]


def _entry_point(name: str) -> "Callable[..., nn.Module]":
    def make(in_channels: int = 3, num_classes: int = 10, image_size: int = 32, **overrides: object) -> nn.Module:
        return build(name, in_channels, num_classes, image_size, **overrides)

    printed = _MODELS[name].paper_row
    make.__doc__ = f"{name}{printed and f': in table 2 {printed}'}. Overrides: {', '.join(_MODELS[name].options())}."
    return make


# `torch.hub` looks for entry points in `dir` of this module, which may contain names with hyphens.
globals().update({name: _entry_point(name) for name in _MODELS})
