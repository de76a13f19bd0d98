"""The networks by name: how each is built, what it costs, and what the paper prints about it."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from replenish import checks
from replenish.lab.models.densenet import DenseNet
from replenish.lab.models.plain import AllCNN, DeeplySupervisedNet, ELUNetwork, NetworkInNetwork
from replenish.lab.models.resnet import UNITS, ResNet, WideResNet
from replenish.lab.models.shake_shake import ShakeShakeNet
from replenish.lab.models.thin import FitNet, HighwayNetwork
from replenish.lab.paper import TABLE2

#: The paper's dropout, for every Wide ResNet that is built by name. The paper keeps a share of 0.7 (section 3.1).
PAPER_DROPOUT = 0.3
#: In smaller images, some networks would have nothing left to pool.
SMALLEST_IMAGE = 8


@dataclass(frozen=True)
class ModelEntry:
    """One network: its name, its builder, the rows of table 2 that it implements, and its size as printed there."""

    name: str
    builder: Callable[..., nn.Module]
    paper_row: str = ""
    paper_parameters: str = ""

    def options(self) -> list[str]:
        """Return the names of the arguments that `build` accepts as overrides."""
        taken = inspect.signature(self.builder).parameters
        return [name for name in taken if name not in ("in_channels", "num_classes", "image_size")]


_UNIT = "|".join(unit.replace("_", "-") for unit in UNITS)
#: (the pattern for readers, the regular expression, the class, its arguments except the sizes in the name)
_FAMILIES: list[tuple[str, str, Callable[..., nn.Module], Callable[[re.Match[str]], dict[str, Any]]]] = [
    (
        "wrn-<depth>-<width>",
        r"wrn-(?P<depth>\d+)-(?P<width>\d+)",
        WideResNet,
        lambda match: {"unit": "bn_after_addition", "dropout": PAPER_DROPOUT},
    ),
    (
        "wide-resnet-<depth>-<width>[-<unit>]",
        rf"wide-resnet-(?P<depth>\d+)-(?P<width>\d+)(-(?P<unit>{_UNIT}))?",
        WideResNet,
        lambda match: {"unit": (match["unit"] or "original").replace("-", "_"), "dropout": PAPER_DROPOUT},
    ),
    (
        "resnet-<depth>[-stochastic-depth]",
        r"resnet-(?P<depth>\d+)(?P<drop>-stochastic-depth)?",
        ResNet,
        lambda match: {"survival": 0.5 if match["drop"] else 1.0},
    ),
    (
        "densenet[-bc]-<depth>-<growth>",
        r"densenet(?P<bc>-bc)?-(?P<depth>\d+)-(?P<growth>\d+)",
        DenseNet,
        # At B = 64 in single precision, DenseNet-BC-190-40 needs 21 GiB, and 9.4 GiB with recomputing.
        lambda match: {"bottleneck": bool(match["bc"]), "recompute": int(match["depth"]) > 100},
    ),
    (
        "shake-shake-<depth>-2x[<groups>x]<width>d",
        r"shake-shake-(?P<depth>\d+)-2x((?P<groups>\d+)x)?(?P<width>\d+)d",
        ShakeShakeNet,
        # Gastaldi's network for CIFAR-100, whose result is in the paper's table, has an even backward pass.
        lambda match: {"cardinality": int(match["groups"]), "backward_mode": "even"} if match["groups"] else {},
    ),
]
PATTERNS: tuple[str, ...] = tuple(pattern for pattern, *_ in _FAMILIES)


def _family_builder(name: str) -> Callable[..., nn.Module] | None:
    for _, pattern, kind, more in _FAMILIES:
        if match := re.fullmatch(pattern, name, flags=re.ASCII):
            sizes = {size: int(match[size]) for size in ("depth", "width", "growth") if size in match.re.groupindex}
            return functools.partial(kind, **sizes, **more(match))
    return None


_SINGLE: dict[str, Callable[..., nn.Module]] = {
    "nin": NetworkInNetwork,
    "all-cnn": AllCNN,
    "dsn": DeeplySupervisedNet,
    "fitnet": FitNet,
    "highway": HighwayNetwork,
    "elu": ELUNetwork,
}

#: Sizes for small machines, which are not in the paper.
_SMALL = ("wide-resnet-16-2", "wrn-16-2", "wrn-10-1", "resnet-20", "densenet-bc-40-12", "shake-shake-26-2x32d")


def _table() -> dict[str, ModelEntry]:
    table = {}
    for name in dict.fromkeys([*(row.model for row in TABLE2), *_SMALL]):
        builder = _SINGLE.get(name) or _family_builder(name)
        assert builder is not None, name
        rows = [row for row in TABLE2 if row.model == name]
        printed = " ".join(filter(None, [", ".join(row.method for row in rows), *{row.depth for row in rows}]))
        table[name] = ModelEntry(name, builder, printed, rows[0].parameters if rows else "")
    return table


#: Every named network, in the order of the paper's table 2.
MODELS: dict[str, ModelEntry] = _table()


def entry(name: str) -> ModelEntry:
    """Return the entry of a name in `MODELS`, or of a name that follows one of `PATTERNS`.

    Raises:
        ValueError: There is no such network; the message names the nearest ones.
    """
    if not isinstance(name, str):
        raise TypeError(f"model should be a str, but got {name!r} of type {type(name).__name__}")
    if name in MODELS:
        return MODELS[name]
    if builder := _family_builder(name):
        return ModelEntry(name, builder)
    nearest = difflib.get_close_matches(name, MODELS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(nearest)}? Or give" if nearest else "or give"
    raise ValueError(
        f"model should be one of the networks in `replenish list models`, but got {name!r}; "
        f"{hint} a size: {', '.join(PATTERNS)}"
    )


def build(
    name: str, in_channels: int = 3, num_classes: int = 10, image_size: int = 32, **overrides: object
) -> nn.Module:
    """Return a network by its name, with fresh weights from torch's generator.

    Args:
        name: One of `MODELS`, or a name that follows one of `PATTERNS`, such as "wrn-16-4".
        in_channels: Channels of the images.
        num_classes: Number of classes.
        image_size: Height and width of the images.
        **overrides: Arguments of the network's class, such as `dropout=0.0`.

    Example:
        >>> import torch
        >>> net = build("wrn-10-1", in_channels=1, num_classes=10, image_size=8, dropout=0.0)
        >>> net(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """
    chosen = entry(name)
    image_size = checks.integer("image_size", image_size, minimum=SMALLEST_IMAGE)
    options = chosen.options()
    for override in overrides:
        if override not in options:
            raise TypeError(f"{name} takes no argument {override!r}; it takes {', '.join(options)}")
    if "image_size" in inspect.signature(chosen.builder).parameters:
        overrides["image_size"] = image_size
    return chosen.builder(in_channels=in_channels, num_classes=num_classes, **overrides)


@dataclass(frozen=True)
class Cost:
    """The size of a network.

    Args:
        parameters: The number of trained parameters, including normalization.
        multiply_adds: Multiplications, each with its addition, of all convolutions and linear layers in the forward
            pass of one image in evaluation. Normalization, activations and poolings are not counted.
    """

    parameters: int
    multiply_adds: int


def parameters(model: nn.Module) -> int:
    """Return the number of trained parameters, each counted once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def cost(name: str, in_channels: int = 3, num_classes: int = 10, image_size: int = 32, **overrides: object) -> Cost:
    """Return the cost of a network by name; the arguments are the same as for `build`.

    Example:
        >>> cost("wrn-28-10")
        Cost(parameters=36479194, multiply_adds=5243328768)
    """
    model = shapes_only(name, in_channels=in_channels, num_classes=num_classes, image_size=image_size, **overrides)
    model.eval()
    size = parameters(model)
    for module in list(model.modules()):
        for child_name, child in module.named_children():
            if isinstance(child, nn.BatchNorm2d):
                # Normalization is not counted, and would take nine tenths of the time on the meta device.
                setattr(module, child_name, nn.Identity())
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.empty(1, in_channels, image_size, image_size, device="meta"))
    return Cost(size, counter.get_total_flops() // 2)  # torch counts a multiplication and its addition as two


def shapes_only(name: str, **options: Any) -> nn.Module:
    """Return a network on the meta device; the arguments are the same as for `build`."""
    # Only around `build`, since the context slows every operation down.
    with torch.device("meta"):
        return build(name, **options)
