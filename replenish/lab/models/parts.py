"""What a value consists of, as bytes that are the same in every process: code, settings, arrays, what is bound to them.

Code of the user's own is followed to the functions, classes and constants that it names; that of installed packages is
known by its name, since they have versions.
"""

from __future__ import annotations

import argparse
import dataclasses
import dis
import functools
import importlib.metadata
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import nn

#: By id, with its number. The values are kept: the id of one that is gone would be given to another.
Seen = dict[int, tuple[int, Any]]
_PLAIN = (bool, int, float, complex, str, bytes, type(None), PurePath, torch.dtype, torch.device)
_SETTINGS = (types.SimpleNamespace, argparse.Namespace)
#: What every module has, beside whether it trains; its weights and modules are looked at apart.
_OF_EVERY_MODULE = frozenset(vars(nn.Module())) - {"training"}
#: What Python puts into a class by itself.
_OF_EVERY_CLASS = frozenset({*vars(type("Empty", (), {})), "__firstlineno__", "__static_attributes__"})


def parts_of(value: Any, seen: Seen | None = None) -> Iterator[bytes]:
    """Yield what a value consists of; of what was `seen` before, only which it was."""
    seen = {} if seen is None else seen
    if isinstance(value, _PLAIN):
        yield repr(value).encode()
        return
    if id(value) in seen:
        yield b"number %d" % seen[id(value)][0]
        return
    seen[id(value)] = len(seen), value
    yield str(getattr(value, "__qualname__", type(value).__qualname__)).encode()
    if isinstance(value, nn.Module):
        yield from _of_network(value, seen)
    elif isinstance(value, (torch.Tensor, np.ndarray)):
        yield from _of_array(value)
    elif isinstance(value, (list, tuple)):
        yield from _of_all(value, seen)
    elif isinstance(value, (set, frozenset)):
        # Each as if it were the only one: they come in another order in every process.
        yield from sorted(b"".join(parts_of(item, dict(seen))) for item in value)
    elif isinstance(value, Mapping):
        yield from _of_fields(value, seen)
    elif isinstance(value, functools.partial):
        yield from _of_all((value.func, value.args, value.keywords), seen)
    elif isinstance(value, types.MethodType):
        yield from _of_all((value.__func__, value.__self__), seen)
    elif isinstance(value, (staticmethod, classmethod)):
        yield from parts_of(value.__func__, seen)
    elif isinstance(value, property):
        yield from _of_all((value.fget,), seen)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, type):
        yield from _of_class(value, seen)
    elif isinstance(value, types.ModuleType):
        yield _source(value) if _is_own(value.__name__) else b""
    elif _is_own(type(value).__module__):
        yield from _of_fields(getattr(value, "__dict__", {}), seen)
        yield from parts_of(type(value), seen)
    elif isinstance(value, _SETTINGS) or dataclasses.is_dataclass(value):
        yield from _of_fields(vars(value), seen)


def _of_all(values: Iterable[Any], seen: Seen) -> Iterator[bytes]:
    for value in values:
        yield from parts_of(value, seen)


def _of_fields(fields: Mapping[Any, Any], seen: Seen) -> Iterator[bytes]:
    for name, value in sorted(fields.items(), key=lambda item: str(item[0])):
        yield str(name).encode()
        yield from parts_of(value, seen)


def _of_array(array: torch.Tensor | np.ndarray[Any, Any]) -> Iterator[bytes]:
    yield f"{array.dtype} {tuple(array.shape)}".encode()
    if isinstance(array, np.ndarray):
        yield array.tobytes() if not array.dtype.hasobject else b""
    elif array.layout == torch.strided and not array.is_meta:
        yield array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _of_network(network: nn.Module, seen: Seen) -> Iterator[bytes]:
    yield repr(network).encode()
    yield from _of_fields(dict(network.named_parameters()), seen)
    yield from _of_fields(dict(network.named_buffers()), seen)  # also those that no checkpoint holds
    for name, module in network.named_modules():
        yield name.encode()
        seen.setdefault(id(module), (len(seen), module))
        yield from _of_fields({key: kept for key, kept in vars(module).items() if key not in _OF_EVERY_MODULE}, seen)
    for kind in sorted({type(module) for module in network.modules()}, key=lambda kind: kind.__qualname__):
        yield from parts_of(kind, seen)


def _of_class(kind: type, seen: Seen) -> Iterator[bytes]:
    for base in kind.__mro__:
        if not f"{base.__module__}.".startswith(("torch.", "builtins.")):
            yield _source(base)
        if _is_own(base.__module__):
            # Beside the source: it may not be kept, and does not say what its functions close over.
            kept = {name: value for name, value in vars(base).items() if name not in _OF_EVERY_CLASS}
            yield from _of_fields({name: value for name, value in kept.items() if name != "__annotations__"}, seen)


def _of_function(function: types.FunctionType, seen: Seen) -> Iterator[bytes]:
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    yield from _of_all((function.__defaults__, function.__kwdefaults__, cells), seen)
    if not _is_own(function.__module__):
        return
    yield from _of_code(function.__code__, seen)
    used = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    yield from _of_fields(used, seen)


def _of_code(code: types.CodeType, seen: Seen) -> Iterator[bytes]:
    """Yield what a function does and with which names and constants, wherever it stands in its file."""
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        yield from _of_code(constant, seen) if isinstance(constant, types.CodeType) else parts_of(constant, seen)


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that code reads and does not set: one that it sets is a count, say, and no setting."""
    found = {(step.opname.partition("_")[0], step.argval) for step in dis.get_instructions(code) if _is_global(step)}
    names = {name for kind, name in found if kind == "LOAD"} - {name for kind, name in found if kind == "STORE"}
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return names.union(*map(_names, inner))


def _is_global(step: dis.Instruction) -> bool:
    return step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")


def _source(code: Any) -> bytes:
    try:
        return inspect.getsource(code).encode()
    except (OSError, TypeError):  # made in an interpreter, which keeps no source
        return b""


@functools.cache
def _is_own(module: str) -> bool:
    """Tell whether a module is the user's own, and of no installed package."""
    if module == "__main__":  # a script, or what is typed: in a notebook its file may be that of an installed package
        return True
    if module.partition(".")[0] in {"replenish", *sys.builtin_module_names, *sys.stdlib_module_names}:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or not _installed_at(module.partition(".")[0]) & set(Path(file).resolve().parents)


def _installed_at(package: str) -> set[Path]:
    """Return where packages are installed: this Python's folders, and where such a package lies as pip has put it.

    That may be any folder of the path (`pip install --target`). A package installed to be edited lies elsewhere.
    """
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    for name in _distributions().get(package, ()):
        folders.add(Path(str(importlib.metadata.distribution(name).locate_file(""))))
    return {folder.resolve() for folder in folders}


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()
