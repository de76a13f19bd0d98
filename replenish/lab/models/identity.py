"""What tells networks apart: a hash of their weights, and a name for a user's own that changes when it does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import nn

from replenish.lab.models.parts import parts_of


def network_name(make: Callable[[], nn.Module]) -> str:
    """Return a name for a network of the user's own: its class's, with its digest; see `network_digest`."""
    return "@".join(_class_and_digest(make))


def network_digest(make: Callable[[], nn.Module]) -> str:
    """Return a digest of all that makes a network what it is, as far as it can be seen.

    That is: its initial weights and buffers, the settings that its modules print or keep, its own modules' classes, and
    the function that makes it with what is bound to it; and of these the functions, classes and global variables that
    they name, if they are the user's own. What `forward` reads from a file, or finds by other ways, cannot be seen.

    Raises:
        TypeError: It makes something else.
    """
    return _class_and_digest(make)[1]


def _class_and_digest(make: Callable[[], nn.Module]) -> tuple[str, str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
    if not isinstance(network, nn.Module):
        raise TypeError(f"model should return a torch.nn.Module, but it returned a {type(network).__name__}")
    digest = hashlib.sha256()
    for part in parts_of((network, make)):
        digest.update(part)
        digest.update(b"\0")
    return type(network).__name__, digest.hexdigest()[:8]


def weights_sha256(network: nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
