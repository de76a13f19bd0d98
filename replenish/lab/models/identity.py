"""What tells networks apart: a hash of their weights, and a name for a user's own that changes when it does."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import nn

_PLAIN = (bool, int, float, str, bytes, type(None))


def network_name(make: Callable[[], nn.Module]) -> str:
    """Return a name for a network of the user's own: its class's, with its digest; see `network_digest`."""
    return "@".join(_class_and_digest(make))


def network_digest(make: Callable[[], nn.Module]) -> str:
    """Return a digest of all that makes a network what it is, as far as it can be seen.

    That is: its initial weights, the settings that its modules print or keep as plain attributes, the source of its
    own modules' classes, and the function that makes it with what is bound to it. What `forward` reads from
    elsewhere, such as a global variable or a file, cannot be seen.

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
    for part in (*_of_network(network), *_of_function(make)):
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


def _of_network(network: nn.Module) -> Iterator[bytes]:
    yield repr(network).encode()
    yield weights_sha256(network).encode()
    for name, module in network.named_modules():
        kept = {key: _plain(value) for key, value in sorted(vars(module).items()) if not key.startswith("_")}
        yield f"{name} {kept}".encode()
    for kind in sorted({type(module) for module in network.modules()}, key=lambda kind: kind.__qualname__):
        for own in kind.__mro__:
            if not own.__module__.startswith(("torch.", "builtins")):
                yield from _of_class(own)


def _of_class(kind: type) -> Iterator[bytes]:
    try:
        yield inspect.getsource(kind).encode()
    except (OSError, TypeError):  # made in an interpreter, which keeps no source
        for name, value in sorted(vars(kind).items()):
            if isinstance(value, FunctionType):
                yield name.encode()
                yield from _of_code(value.__code__)


def _of_function(make: Any) -> Iterator[bytes]:
    if isinstance(make, functools.partial):
        yield repr(
            [*map(_plain, make.args), *sorted((key, _plain(value)) for key, value in make.keywords.items())]
        ).encode()
        make = make.func
    if isinstance(make, FunctionType):
        yield from _of_code(make.__code__)
        bound = [*(cell.cell_contents for cell in make.__closure__ or ()), *(make.__defaults__ or ())]
        yield repr([_plain(value) for value in bound]).encode()


def _of_code(code: CodeType) -> Iterator[bytes]:
    """Yield what a function does and with which names and constants, wherever it stands in its file."""
    yield code.co_code
    yield repr((code.co_names, [_plain(constant) for constant in code.co_consts])).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)


def _plain(value: Any) -> Any:
    """Return what is the same in every process: plain values themselves, of others what they are called."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return sorted((str(key), _plain(item)) for key, item in value.items())
    return getattr(value, "__qualname__", type(value).__qualname__)
