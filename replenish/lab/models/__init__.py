"""The networks of the paper's table 2, each a plain `torch.nn.Module`.

`build` makes a network by its name, and `MODELS` lists the names. Every network maps images (batch, channels, height,
width) to logits (batch, classes). Images can have any number of channels and 8x8 pixels or more. `docs/deviations.md`
lists our choices where the networks' papers leave something open.

Example:
    >>> from replenish.lab.models import MODELS, build
    >>> "wrn-28-10" in MODELS
    True
    >>> small = build("wrn-16-2", in_channels=1, num_classes=10, image_size=8)
"""

from replenish.lab.models.densenet import DenseNet
from replenish.lab.models.layers import training_loss
from replenish.lab.models.plain import AllCNN, DeeplySupervisedNet, ELUNetwork, NetworkInNetwork
from replenish.lab.models.registry import MODELS, PATTERNS, Cost, ModelEntry, build, cost, entry
from replenish.lab.models.resnet import UNITS, ResNet, WideResNet
from replenish.lab.models.shake_shake import ShakeShakeNet
from replenish.lab.models.thin import FitNet, HighwayNetwork

__all__ = [
    "MODELS",
    "PATTERNS",
    "UNITS",
    "AllCNN",
    "Cost",
    "DeeplySupervisedNet",
    "DenseNet",
    "ELUNetwork",
    "FitNet",
    "HighwayNetwork",
    "ModelEntry",
    "NetworkInNetwork",
    "ResNet",
    "ShakeShakeNet",
    "WideResNet",
    "build",
    "cost",
    "entry",
    "training_loss",
]
