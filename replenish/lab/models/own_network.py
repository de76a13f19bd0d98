"""Your own networks: found by the place of their code, and identified by their content.

A place is `module:function`, or a name in torchvision or timm, so that another process can import the same code. In a
config it ends in a digest (`module:function@1f2e3d4c`): a changed network has another name, and its runs do not mix
with earlier ones. The digest covers the network's classes, weights and settings, the source and the global values of
your modules that they need, and the versions of installed packages. What cannot be read is refused, unless a label
names the version.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import operator
import pickle
import sys
import types
import weakref
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

MakeNetwork = Callable[[], nn.Module]
#: Packages of networks, each with its module and the function that makes a network by name.
ZOOS = {"torchvision": ("torchvision.models", "get_model"), "timm": ("timm", "create_model")}
#: Packages whose code a digest leaves out; a result names the versions of Python, torch and Replenish.
_KNOWN = {"torch", "replenish", *sys.builtin_module_names, *sys.stdlib_module_names}
#: Classes of other packages whose objects are read among global values too.
_READABLE = (Namespace, types.SimpleNamespace, types.BuiltinFunctionType, functools.partial, np.ndarray, np.generic)
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))


def is_own(name: str) -> bool:
    """Return whether a network's name is the place of its code."""
    return ":" in name


def own_network(name: str, channels: int, classes: int, image_size: int | tuple[int, int], **more: Any) -> MakeNetwork:
    """Return a function that makes the network, with whichever of `in_channels`, `num_classes`, `image_size` it takes.

    The name is `module:function`, found from the current folder; `torchvision:resnet18`; or `timm:resnet18`. If it ends
    in `@` and a digest, the network must have that digest. The network must take every argument of `more`.

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
    if digest and name not in _verified:
        if network_digest(make) != digest:
            raise ValueError(
                f"the network {place} has changed since its runs began, when its digest was {digest}; use another "
                f"folder for its new runs"
            )
        _verified.add(name)
    return make


#: Names whose digests this process has compared: a training may fill a cache, which is a global value.
_verified: set[str] = set()


def network_name(make: MakeNetwork) -> str:
    """Return a name for your own network that changes with it: its class and its digest.

    `make.replenish_label`, a string, is part of the digest. A file that `forward` opens, or the environment, is not. Of
    a global value, numbers, text, arrays, containers and objects of your own classes count, of others only the class.

    Raises:
        TypeError: `make` does not return a network.
        ValueError: Something that decides what the network computes cannot be read, and there is no label.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
    if not isinstance(network, nn.Module):
        raise TypeError(f"model should return a torch.nn.Module, but it returned a {type(network).__name__}")
    kind, label = type(network), getattr(make, "replenish_label", None)
    parts, unknown = _content(network)
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


def _content(network: nn.Module) -> tuple[list[bytes], list[str]]:
    """Return all that identifies a network, and the reasons why something could not be read."""
    reader = _Reader()
    parts = [reader.read(network)]
    unknown = [f"it holds a value that cannot be read ({reason})" for reason in reader.unreadable]
    for name, tree in _reached(reader.modules, late=True).items():
        if tree is None:
            unknown.append(f"{name} has no source file")
            continue
        parts.append(f"{name}\n{ast.unparse(tree)}\n".encode())
        if dynamic := sorted(_dynamic(tree)):
            unknown.append(f"{name} uses {', '.join(dynamic)}")
    # Only of modules that are loaded whenever the network is: others may be loaded by the first training.
    early = {name: tree for name, tree in _reached(reader.modules, late=False).items() if tree is not None}
    used = {name for tree in early.values() for name in _used(tree)}
    for name in early:
        if name in sys.modules:
            values = _Reader(of_globals=True)
            parts.append(values.read(_globals(sys.modules[name], used)))
            unknown += [f"a value in {name} cannot be read ({reason})" for reason in values.unreadable]
    parts.append(repr(_versions(reader.modules)).encode())
    return parts, unknown


class _Reader(pickle.Pickler):
    """Reads values as bytes, which nobody unpickles. It collects the modules of their code, and what it cannot read.

    Functions and classes are included by name; lambdas, local functions and local classes, whose names are not unique,
    by content. Of global values, functions are included by content, and values of other packages' classes by their
    class only: many change from run to run, such as clocks, random generators and connections.
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
        except Exception as error:  # whatever a value raises that cannot be pickled
            self.unreadable.append(str(error))
        return self._pickled.getvalue()

    def persistent_id(self, value: Any) -> Any:
        """Return a set as a list: the order of a set differs from process to process."""
        return sorted(value, key=repr) if isinstance(value, set | frozenset) else None

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled: as a call of a builtin, which nobody ever makes, with the content as state."""
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
                # Of a global function too: when it was loaded, its file may have been another.
                return [*found, *_body(value)]
            case types.MethodType():
                return [value.__self__, value.__func__]
            case property() | staticmethod() | classmethod():
                return [getattr(value, name, None) for name in ("fget", "fset", "__func__")]
            case weakref.ReferenceType():
                return [value()]
            case types.CodeType():
                return [value.co_code, value.co_names, value.co_consts]
        readable = _is_own(type(value).__module__) or isinstance(value, _READABLE)
        return [type(value)] if self._of_globals and not readable else None


def _unnumbered(name: str, kept: Any) -> Any:
    """Return an attribute of a module, without the keys of hooks, which torch numbers anew in each process."""
    hooks = name in _OF_EVERY_MODULE and isinstance(kept, dict) and any(isinstance(key, int) for key in kept)
    return list(kept.values()) if hooks else kept


def _is_named(value: Any) -> bool:
    """Return whether a function or class is the one of its name."""
    try:
        return operator.attrgetter(value.__qualname__)(sys.modules[value.__module__]) is value
    except (AttributeError, KeyError):
        return False


def _body(value: Any) -> list[Any]:
    """Return what can differ between functions or classes of one name in one source."""
    own = _is_own(value.__module__)
    if isinstance(value, type):
        return [value.__bases__, _attributes(value) if own else {}]
    if not own and _is_named(value):
        return []
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.__code__, value.__defaults__, value.__kwdefaults__, cells]


def _globals(module: types.ModuleType, used: Set[str]) -> dict[str, Any]:
    """Return the values of these names in a module and in its classes: a program can set others than the source does.

    Other global values are the program's own, such as the results so far.
    """
    found = {}
    for name, value in vars(module).items():
        if name in used and not isinstance(value, types.ModuleType):
            found[name] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                found |= {f"{name}.{key}": each for key, each in _attributes(value).items()}
    return dict(sorted(found.items()))


def _used(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the functions and classes of a source use, also as strings."""
    code = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    for node in (node for part in ast.walk(tree) if isinstance(part, code) for node in ast.walk(part)):
        match node:
            case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)) | ast.Constant(value=str(name)):
                yield name
            case ast.ClassDef(name=str(name)) | ast.FunctionDef(name=str(name)) | ast.alias(name=str(name)):
                yield name


def _attributes(kind: type) -> dict[str, Any]:
    """Return what a class defines, without what Python adds to it, some of it only later."""
    return {
        name: each
        for name, each in vars(kind).items()
        if isinstance(each, types.FunctionType) or not name.startswith("__")
    }


def _is_own(name: str) -> bool:
    """Return whether a module is the user's own: not part of Python, of Replenish or of an installed package."""
    if name.partition(".")[0] in _KNOWN:
        return False
    file = _file(name)
    return file is None or not {"site-packages", "dist-packages"} & set(file.parts)


def _file(name: str) -> Path | None:
    """Return the file of a module, which need not be loaded and is not imported here; None if there is none."""
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
    else:
        spec = _spec(name)
        file = spec.origin if spec is not None and spec.has_location else None
    return None if file is None else Path(file)


def _spec(name: str) -> ModuleSpec | None:
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    parent = name.rpartition(".")[0]
    if not parent:
        return importlib.util.find_spec(name)
    above = _spec(parent)
    places = above.submodule_search_locations if above is not None else None
    return None if places is None else PathFinder.find_spec(name, places)


def _tree(name: str) -> ast.Module | None:
    """Return the parsed source of a module, without comments and without what runs only as a script."""
    file = _file(name)
    if file is None or file.suffix != ".py" or not file.is_file():
        return None
    tree = ast.parse(file.read_bytes())
    script = "__name__ == '__main__'"
    tree.body = [part for part in tree.body if not (isinstance(part, ast.If) and ast.unparse(part.test) == script)]
    return tree


def _reached(names: Set[str], *, late: bool) -> dict[str, ast.Module | None]:
    """Return the sources of your modules among these and of those that they import; inside functions too, if `late`."""
    trees: dict[str, ast.Module | None] = {}
    waiting = sorted(names)
    for name in waiting:
        # An import may also name a function or a class, which has no file.
        if name not in trees and _is_own(name) and (name in names or _file(name) is not None):
            trees[name] = tree = _tree(name)
            waiting += [] if tree is None else _imports(name, _nodes(tree, late))
    return trees


def _nodes(tree: ast.AST, late: bool) -> Iterator[ast.AST]:
    """Yield what is in a source; inside functions too, if `late`."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _nodes(node, late)


def _imports(name: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the modules that a source imports, and the packages that they are in."""
    spec = _spec(name)
    package = spec.parent or "" if spec is not None else ""
    for node in nodes:
        if isinstance(node, ast.Import):
            places = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            places = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for place in places:
            parts = place.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _dynamic(tree: ast.Module) -> set[str]:
    """Return the names in a source that run or import code which the source does not name."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.alias(name=name):
                found.add(name)
            case ast.Attribute(attr="import_module" | "exec_module" | "load_module" as name):
                found.add(name)
    return found & {"import_module", "exec_module", "load_module", "__import__", "exec", "eval", "runpy"}


def _versions(modules: Iterable[str]) -> list[str]:
    """Return the versions of the installed packages that these modules are from."""
    packages = {name.partition(".")[0] for name in modules if not _is_own(name)} - _KNOWN
    installed = importlib.metadata.packages_distributions() if packages else {}
    names = sorted(name for package in packages for name in installed.get(package, ()))
    return [f"{name} {importlib.metadata.version(name)}" for name in names]


def _imported(module: str, function: str) -> Callable[..., Any]:
    if not module or not function:
        raise ValueError(f"model should be module:function, such as networks:SmallNet, but got {module}:{function}")
    if "" not in sys.path:  # find modules of the current folder, as `python` does
        sys.path.insert(0, "")
    try:
        with torch.random.fork_rng(devices=[]):  # a module may draw when it is imported
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
