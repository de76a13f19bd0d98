"""How networks are identified: a hash of their weights, and for your own networks a name that changes when they do.

The name of an own network has a digest of the source of your modules that it imports, directly or through others, of
its initial weights, and of the values that its modules, classes and functions hold. Installed packages count with their
versions. Where something cannot be read, a warning says so and asks for a label.
"""

from __future__ import annotations

import ast
import enum
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import logging
import pickle
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import nn

_PLAIN = (bool, int, float, complex, str, bytes, type(None), PurePath, torch.dtype, torch.device, enum.Enum)
_OF_EVERY_MODULE = frozenset(vars(nn.Module())) - {"training"}
#: Attributes that Python adds to a class, and annotations, which change nothing.
_OF_EVERY_CLASS = {*vars(type("Empty", (), {})), "__annotations__", "__firstlineno__", "__static_attributes__"} | {
    "__orig_bases__",
    "__parameters__",
    "__type_params__",
    "_abc_impl",
}
#: Names in a source that run or import code which the source does not name.
_DYNAMIC = frozenset({"import_module", "__import__", "exec", "eval", "runpy"})
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


def network_name(make: Callable[[], nn.Module]) -> str:
    """Return a name for your own network: its class with its digest; see `network_digest`."""
    return "@".join(_class_and_digest(make))


def network_digest(make: Callable[[], nn.Module]) -> str:
    """Return a digest of everything that makes a network what it is.

    `make.replenish_label`, a string, is part of the digest. Where a warning says that something cannot be read, set it,
    and change it with the network. A file that `forward` opens, or the environment, is never read.

    Raises:
        TypeError: `make` does not return a network.
    """
    return _class_and_digest(make)[1]


def weights_sha256(network: nn.Module) -> str:
    """Return the SHA-256 of all parameters and buffers with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _class_and_digest(make: Callable[[], nn.Module]) -> tuple[str, str]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
    if not isinstance(network, nn.Module):
        raise TypeError(f"model should return a torch.nn.Module, but it returned a {type(network).__name__}")
    label = getattr(make, "replenish_label", None)
    found = _Description()
    found.add((network, make, label if isinstance(label, str) else None))
    found.add_modules()
    if found.unknown and not isinstance(label, str):
        warnings.warn(
            f"whether the network {type(network).__name__} has changed cannot be determined with certainty: "
            f"{'; '.join(sorted(found.unknown))}. Give the function or class that makes it an attribute "
            f"replenish_label, such as 'v1', and change that whenever you change the network",
            stacklevel=4,
        )
    return type(network).__name__, found.digest.hexdigest()[:8]


class _Description:
    """The digest of some values, the modules that their code is in, and what could not be read."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.modules: set[str] = set()
        self.unknown: set[str] = set()
        self._seen: dict[int, tuple[int, Any]] = {}  # with the values, since the id of a freed one is used again

    def write(self, *texts: object) -> None:
        for text in texts:
            self.digest.update(text if isinstance(text, bytes) else str(text).encode())
            self.digest.update(b"\0")

    def add(self, value: Any) -> None:
        """Add a value, with everything that it holds."""
        if isinstance(value, _PLAIN):
            self.write(repr(value))
            return
        if id(value) in self._seen:
            self.write("number", self._seen[id(value)][0])
            return
        self._seen[id(value)] = len(self._seen), value
        self.write(type(value).__qualname__)
        for kind, add in _KINDS:
            if isinstance(value, kind):
                add(self, value)
                return
        self._add_object(value)

    def add_all(self, values: Any) -> None:
        for value in values:
            self.add(value)

    def add_fields(self, fields: Mapping[Any, Any]) -> None:
        for name, value in sorted(fields.items(), key=lambda item: str(item[0])):
            self.write(name)
            self.add(value)

    def add_network(self, network: nn.Module) -> None:
        self.write(_ADDRESS.sub("", repr(network)))
        self.add_fields(dict(network.named_parameters()))
        self.add_fields(dict(network.named_buffers()))  # also buffers that no checkpoint holds
        for name, module in network.named_modules():
            self.write(name)
            self._seen.setdefault(id(module), (len(self._seen), module))
            self.add_fields({key: kept for key, kept in vars(module).items() if key not in _OF_EVERY_MODULE})
            self.add(type(module))

    def add_array(self, array: torch.Tensor | np.ndarray[Any, Any]) -> None:
        self.write(array.dtype, tuple(array.shape))
        if isinstance(array, torch.Tensor):
            if array.layout != torch.strided or array.is_meta:
                self.unknown.add("it has a tensor without values in memory")
                return
            array = array.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        if array.dtype.hasobject:
            self.add_all(array.reshape(-1).tolist())
        else:
            self.write(array.tobytes())

    def add_set(self, values: Any) -> None:
        parts = []
        for value in values:  # each by itself, since their order differs from process to process
            part = _Description()
            part.add(value)
            self.modules |= part.modules
            self.unknown |= part.unknown
            parts.append(part.digest.digest())
        self.write(*sorted(parts))

    def add_function(self, function: types.FunctionType) -> None:
        self.modules.add(function.__module__)
        self.write(function.__module__, function.__qualname__)
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
        self.add_all((function.__defaults__, function.__kwdefaults__, cells, getattr(function, "__wrapped__", None)))
        if _is_own(function.__module__):
            self._add_code(function.__code__)

    def _add_code(self, code: types.CodeType) -> None:
        """Add what distinguishes two functions of one name, such as two lambdas."""
        self.write(code.co_code, code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant)
            else:
                self.add(constant)

    def add_class(self, kind: type) -> None:
        for base in kind.__mro__:
            self.modules.add(base.__module__)
            self.write(base.__module__, base.__qualname__)
            if _is_own(base.__module__):
                self.add_fields({name: kept for name, kept in vars(base).items() if name not in _OF_EVERY_CLASS})

    def _add_object(self, value: Any) -> None:
        kind = type(value)
        if callable(value) and isinstance(getattr(value, "__qualname__", None), str):  # functions written in C
            self.write(getattr(value, "__module__", ""), value.__qualname__)
            self.add(getattr(value, "__wrapped__", None))
            return
        slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(value, name)]
        if slots or hasattr(value, "__dict__"):
            self.add_fields({**getattr(value, "__dict__", {}), **{name: getattr(value, name) for name in slots}})
            self.add(kind)
            return
        try:
            self.write(pickle.dumps(value, protocol=4))
        except Exception:  # whatever a type raises that cannot be pickled
            self.unknown.add(f"it holds a {kind.__module__}.{kind.__qualname__}")

    def add_modules(self) -> None:
        """Add the source and the values of your own modules, and the versions of installed packages."""
        waiting, done = sorted(self.modules), set(self.modules)
        while waiting:
            name = waiting.pop(0)
            if not _is_own(name):
                self._add_version(name)
                continue
            tree = _tree(name)
            if tree is None:
                self.unknown.add(
                    "it was typed into an interpreter or a notebook"
                    if name == "__main__"
                    else f"{name} has no source that can be read"
                )
                self._add_typed(name)
                continue
            self.write(name, ast.unparse(tree))
            if dynamic := _DYNAMIC & _names(tree):
                self.unknown.add(f"{name} uses {', '.join(sorted(dynamic))}")
            changed = {each for node in ast.walk(tree) if isinstance(node, ast.Global) for each in node.names}
            self._add_globals(vars(sys.modules[name]) if name in sys.modules else {}, changed)
            new = {imported for imported in _imports(name, tree) if _is_own(imported)} - done
            done |= new
            waiting += sorted(new)

    def _add_version(self, name: str) -> None:
        package = name.partition(".")[0]
        if package not in {"torch", "replenish", "builtins", *sys.stdlib_module_names}:
            for distribution in _distributions().get(package, ()):
                self.write(distribution, importlib.metadata.version(distribution))

    def _add_globals(self, values: Mapping[str, Any], changed: set[str]) -> None:
        """Add global values; a name that a function sets is a counter or a cache rather than a setting."""
        for name, value in sorted(values.items()):
            if not name.startswith("__") and name not in changed:
                if _is_plain(value):
                    self.write(name, repr(value))
                elif callable(value) and hasattr(value, "__qualname__"):
                    self.write(name, getattr(value, "__module__", ""), value.__qualname__)

    def _add_typed(self, name: str) -> None:
        """Add all functions of a module without source, and the values that their code names."""
        values = vars(sys.modules[name])
        for key, value in sorted(values.items()):
            function = inspect.unwrap(value) if callable(value) else None
            if isinstance(function, types.FunctionType) and function.__module__ == name:
                self.write(key)
                self.add(function)
                for used in function.__code__.co_names:
                    if _is_plain(values.get(used)):
                        self.write(used, repr(values.get(used)))


#: How values of each kind are added; the first kind that fits counts.
_KINDS: tuple[tuple[Any, Callable[[_Description, Any], None]], ...] = (
    (nn.Module, _Description.add_network),
    ((torch.Tensor, np.ndarray), _Description.add_array),
    ((list, tuple), _Description.add_all),
    ((set, frozenset), _Description.add_set),
    (Mapping, _Description.add_fields),
    (functools.partial, lambda found, value: found.add_all((value.func, value.args, value.keywords))),
    (types.MethodType, lambda found, value: found.add_all((value.__func__, value.__self__))),
    ((staticmethod, classmethod), lambda found, value: found.add(value.__func__)),
    (property, lambda found, value: found.add_all((value.fget, value.fset))),
    (types.FunctionType, _Description.add_function),
    (type, _Description.add_class),
    (logging.Logger, lambda found, value: found.write(value.name)),
    (types.ModuleType, lambda found, value: found.modules.add(value.__name__)),
    ((types.MemberDescriptorType, types.GetSetDescriptorType), lambda found, value: found.write(value.__name__)),
)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value) in (list, tuple) and all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return isinstance(value, _PLAIN)


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _tree(name: str) -> ast.Module | None:
    """Return the parsed source of a module, without comments and without what runs only as a script."""
    file = _file(name)
    if file is None or file.suffix != ".py" or not file.is_file():
        return None
    tree = ast.parse(file.read_bytes())
    tree.body = [statement for statement in tree.body if not _is_script_part(statement)]
    return tree


def _is_script_part(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _names(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr == "import_module"}
    return found | {
        alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
    }


def _imports(name: str, tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a source imports anywhere, and the packages that they are in."""
    package = getattr(sys.modules.get(name), "__package__", None) or name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            places = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module or "")))
            places = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for place in places:
            words = place.split(".")
            yield from (".".join(words[:count]) for count in range(1, len(words) + 1))


@functools.cache
def _is_own(name: str) -> bool:
    """Return whether a module is the user's own: not part of Python, of Replenish or of an installed package."""
    if name == "__main__":
        file = _file(name)
        return file is None or (
            not _is_install_folder(file.parent.parent) and file.parent != Path(sys.executable).parent
        )
    top = name.partition(".")[0]
    if top in {"replenish", *sys.builtin_module_names, *sys.stdlib_module_names}:
        return False
    file, top_file = _file(name), _file(top)
    if file is None and name not in sys.modules:
        return False  # not a module, but a name inside one
    folder = None if top_file is None else top_file.parent.parent if top_file.name == "__init__.py" else top_file.parent
    return folder is None or not _is_install_folder(folder)


def _is_install_folder(folder: Path) -> bool:
    return any(folder.glob("*.dist-info"))


def _file(name: str) -> Path | None:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return None if file is None else Path(file).resolve()


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()
