"""A digest of your own network, which changes with everything that decides what the network computes.

The digest covers the network's classes, weights and settings, the sources and the global values of your modules that
they need, and the versions of installed packages. A network with something that cannot be read is refused, unless a
label names its version.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import operator
import pickle
import sys
import types
import weakref
from argparse import Namespace
from collections.abc import Callable, Mapping, Set
from typing import Any

import numpy as np
import torch
from torch import nn

from replenish.lab.models.own_sources import dynamic_names, is_own_module, reached, used_names, versions

MakeNetwork = Callable[[], nn.Module]
#: The attributes to read of values that pickle would refuse, or of which it would store only the name.
_PARTS = {
    types.MethodType: ("__self__", "__func__"),
    types.CodeType: ("co_code", "co_names", "co_consts"),
    type(functools.cache(len)): ("__wrapped__",),
    property: ("fget", "fset"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
#: Classes of other packages whose objects are read completely, also as global values.
_READABLE = (Namespace, types.SimpleNamespace, types.BuiltinFunctionType, functools.partial, np.ndarray, np.generic)
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def network_name(make: MakeNetwork) -> str:
    """Return a name for your own network, made of its class and its digest.

    `make.replenish_label`, a string, is part of the digest. The environment and files that `forward` opens are not.
    Global values are part of it if they are numbers, text, arrays, containers or objects of your own classes. Of other
    objects, only the class is.

    Raises:
        TypeError: `make` does not return a network.
        ValueError: Something that decides what the network computes cannot be read, and there is no label.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
    return name_of(network, make)


def name_of(network: nn.Module, make: MakeNetwork) -> str:
    """Return the name of a network that `make` has just made; see `network_name`."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"model should return a torch.nn.Module, but it returned a {type(network).__name__}")
    kind, label = type(network), getattr(make, "replenish_label", None)
    parts, unknown = _parts_of(network)
    if unknown and not isinstance(label, str):
        raise ValueError(
            f"whether the network {kind.__name__} has changed cannot be determined: {'; '.join(unknown)}. Give "
            f"the function or class that makes it an attribute replenish_label, such as 'v1', and change that whenever "
            f"you change the network"
        )
    parts.append(repr(label if isinstance(label, str) else None).encode())
    return f"{kind.__name__}@{hashlib.sha256(b''.join(parts)).hexdigest()[:8]}"


def network_digest(make: MakeNetwork) -> str:
    """Return the digest in a network's name."""
    return network_name(make).partition("@")[2]


def _parts_of(network: nn.Module) -> tuple[list[bytes], list[str]]:
    """Return everything that identifies a network, and the reasons why something could not be read."""
    reader = _Reader()
    parts = [reader.read(network)]
    unknown = [f"it holds a value that cannot be read ({reason})" for reason in reader.unreadable]
    for name, tree in reached(reader.modules, late=True).items():
        if tree is None:
            unknown.append(f"{name} has no source file")
            continue
        parts.append(f"{name}\n{ast.unparse(tree)}\n".encode())
        if dynamic := sorted(dynamic_names(tree)):
            unknown.append(f"{name} uses {', '.join(dynamic)}")
    # Global values are read only from modules that are loaded with the network. The training may load others later.
    early = {name: tree for name, tree in reached(reader.modules, late=False).items() if tree is not None}
    used = {name for tree in early.values() for name in used_names(tree)}
    for name in early:
        if name in sys.modules:
            values = _Reader(of_globals=True)
            parts.append(values.read(_globals(sys.modules[name], used)))
            unknown += [f"a value in {name} cannot be read ({reason})" for reason in values.unreadable]
    parts.append(repr(versions(reader.modules)).encode())
    return parts, unknown


class _Reader(pickle.Pickler):
    """Reads values as bytes, which are never unpickled, and collects their modules and what it cannot read.

    Functions and classes are included by name. Lambdas, local functions and local classes, whose names are not unique,
    are included by content. Of global values, functions are included by content, and objects of other packages' classes
    by their class only, since many change from run to run: clocks, random generators, connections.
    """

    def __init__(self, *, of_globals: bool = False) -> None:
        self._pickled, self._of_globals = io.BytesIO(), of_globals
        super().__init__(self._pickled, protocol=4)
        self.modules: set[str] = set()
        self.unreadable: list[str] = []

    def read(self, value: Any) -> bytes:
        """Return a value as bytes."""
        try:
            self.dump(value)
        except Exception as error:  # values that cannot be pickled raise many kinds of exceptions
            self.unreadable.append(str(error))
            return b""
        return self._pickled.getvalue()

    def persistent_id(self, value: Any) -> Any:
        """Return a set as a sorted list, since the order of a set differs from process to process."""
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else None

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled: as a call of a builtin (which is never made) with the content as its state."""
        content = self._content(value)
        return NotImplemented if content is None else (vars, (), content)

    def _content(self, value: Any) -> list[Any] | None:
        match value:
            case nn.Module():
                return [type(value), {name: _unnumbered(name, kept) for name, kept in vars(value).items()}]
            case torch.Tensor():
                values = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
                digest = hashlib.sha256(values.data).hexdigest()
                return [str(value.dtype), tuple(value.shape), value.requires_grad, digest]
            case Mapping():
                return [type(value), dict(value)]
            case types.ModuleType():
                self.modules.add(value.__name__)
                return [value.__name__]
            case types.FunctionType() | type():
                self.modules.add(value.__module__)
                found = [value.__module__, value.__qualname__]
                if _is_named(value) and (isinstance(value, type) or not self._of_globals):
                    return found
                # The content of a global function too, since its file may have changed after it was loaded.
                return [*found, *_body(value)]
            case weakref.ReferenceType():
                return [value()]
        if names := _PARTS.get(type(value)):
            return [getattr(value, name) for name in names]
        readable = is_own_module(type(value).__module__) or isinstance(value, _READABLE)
        return [type(value)] if self._of_globals and not readable else None


def _unnumbered(name: str, kept: Any) -> Any:
    """Return an attribute of a module, without the keys of hooks, which torch numbers anew in each process."""
    hooks = name in _OF_EVERY_MODULE and isinstance(kept, dict) and any(isinstance(key, int) for key in kept)
    return list(kept.values()) if hooks else kept


def _is_named(value: Any) -> bool:
    """Return whether a function or class can be found by its name."""
    try:
        return operator.attrgetter(value.__qualname__)(sys.modules[value.__module__]) is value
    except (AttributeError, KeyError):
        return False


def _body(value: Any) -> list[Any]:
    """Return what can differ between functions or classes that have the same name in the same source."""
    own = is_own_module(value.__module__)
    if isinstance(value, type):
        return [value.__bases__, _attributes(value) if own else {}]
    if not own and _is_named(value):
        return []
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.__code__, value.__defaults__, value.__kwdefaults__, cells]


def _globals(module: types.ModuleType, used: Set[str]) -> dict[str, Any]:
    """Return the values of the `used` names in a module and in its classes.

    A program can set other values than the source does. Values of other names, such as results, do not matter.
    """
    found = {}
    for name, value in vars(module).items():
        if name in used and not isinstance(value, types.ModuleType):
            found[name] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                found |= {f"{name}.{key}": each for key, each in _attributes(value).items()}
    return dict(sorted(found.items()))


def _attributes(kind: type) -> dict[str, Any]:
    """Return the attributes that a class defines, without those that Python adds, some of them only later."""
    return {
        name: each
        for name, each in vars(kind).items()
        if isinstance(each, types.FunctionType) or not name.startswith("__")
    }
