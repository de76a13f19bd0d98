"""Your own networks, by the place of their code: `module:function`, or a name in torchvision or timm.

With the place, another process can import the same code. In a config, a digest follows the place
(`module:function@1f2e3d4c`). So a changed network has another name, and its runs do not mix with earlier ones.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from replenish.lab.models.network_digest import MakeNetwork, network_digest

#: Packages of networks, each with its module and the function that makes a network by name.
ZOOS = {"torchvision": ("torchvision.models", "get_model"), "timm": ("timm", "create_model")}
#: Networks whose digests this process has checked. Later they may differ: a training may fill a global cache.
_verified: set[tuple[Any, ...]] = set()


def is_own(name: str) -> bool:
    """Return whether a network's name is the place of its code, and not a name in `MODELS`."""
    return ":" in name


def own_network(name: str, channels: int, classes: int, image_size: int | tuple[int, int], **more: Any) -> MakeNetwork:
    """Return a function without arguments that makes the network.

    The network's code gets `in_channels`, `num_classes` and `image_size` if it has parameters of these names. It must
    accept every argument of `more`. `name` is `module:function`, found from the current folder, or
    `torchvision:resnet18`, or `timm:resnet18`. If it ends in `@` and a digest, the network must have that digest.

    Raises:
        ValueError: There is no such function, it takes other arguments, or its network has another digest.
    """
    place, _, digest = name.partition("@")
    module, _, function = place.partition(":")
    if module in ZOOS:
        make = _of_a_zoo(module, function, channels, classes, more)
    else:
        found = _imported(module, function)
        make = _bound(found, place, {"in_channels": channels, "num_classes": classes, "image_size": image_size}, more)
    checked = (name, channels, classes, image_size, *sorted(more.items()))
    if digest and checked not in _verified:
        if network_digest(make) != digest:
            raise ValueError(
                f"the network {place} has changed since its runs began, when its digest was {digest}; use another "
                f"folder for its new runs"
            )
        _verified.add(checked)
    return make


def _imported(module: str, function: str) -> Callable[..., Any]:
    if not module or not function:
        raise ValueError(f"model should be module:function, such as networks:SmallNet, but got {module}:{function}")
    if "" not in sys.path:  # find modules of the current folder, as `python` does
        sys.path.insert(0, "")
    try:
        with torch.random.fork_rng(devices=[]):  # importing a module may draw random numbers
            found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"model should be module:function, but {module} cannot be imported: {error}") from None
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found) or isinstance(found, nn.Module):
        got = "a network itself" if isinstance(found, nn.Module) else "nothing that can be called"
        raise ValueError(f"model should be a function or class that makes a network, but {module}:{function} is {got}")
    return found


def _bound(function: Callable[..., Any], place: str, offered: dict[str, Any], more: dict[str, Any]) -> MakeNetwork:
    signature = inspect.signature(function)
    given = {name: value for name, value in offered.items() if name in signature.parameters} | more
    try:
        signature.bind(**given)
    except TypeError as error:
        raise ValueError(f"{place} should need no arguments except {', '.join(offered | more)}, but: {error}") from None
    make = functools.partial(function, **given)
    make.replenish_label = getattr(function, "replenish_label", None)  # type: ignore[attr-defined]
    return make


def _of_a_zoo(zoo: str, name: str, channels: int, classes: int, more: dict[str, Any]) -> MakeNetwork:
    module, function = ZOOS[zoo]
    try:
        make: Any = getattr(importlib.import_module(module), function)
    except (ImportError, RuntimeError) as error:  # RuntimeError: torchvision built for another torch
        raise ValueError(f"{zoo}:{name} needs {zoo}, which cannot be imported here: {error}") from None
    given: dict[str, Any] = {"num_classes": classes, **more}
    if zoo == "timm":
        given["in_chans"] = channels
    elif channels != 3:
        raise ValueError(f"torchvision's networks take images of 3 channels, but these have {channels}")

    def build() -> nn.Module:
        try:
            return make(name, **given)
        except (ValueError, RuntimeError, TypeError) as error:
            raise ValueError(f"{zoo} could not make {name!r}: {error}") from None

    return build
