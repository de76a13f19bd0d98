"""The sources of your own modules that a network needs, and what these sources use.

A module is your own if it is not part of Python, of Replenish or of an installed package.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Set
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

#: Packages whose code a digest leaves out. Results contain the versions of Python, torch and Replenish.
_KNOWN = {"torch", "replenish", *sys.builtin_module_names, *sys.stdlib_module_names}


def is_own_module(name: str) -> bool:
    """Return whether a module is the user's own: not part of Python, of Replenish or of an installed package."""
    if name.partition(".")[0] in _KNOWN:
        return False
    file = _file(name)
    if file is None:
        return True
    if {"site-packages", "dist-packages"} & set(file.parts):
        return False
    # `pip install --target` installs into any folder, which may hold your own modules too.
    return not (any(map(_holds_packages, file.parents)) and name.partition(".")[0] in _installed())


def reached(names: Set[str], *, late: bool) -> dict[str, ast.Module | None]:
    """Return the sources of your own modules among `names` and of those they import, in functions too if `late`."""
    trees: dict[str, ast.Module | None] = {}
    waiting = sorted(names)
    for name in waiting:
        # An import may also name a function or a class, which has no file.
        if name not in trees and is_own_module(name) and (name in names or _file(name) is not None):
            trees[name] = tree = _tree(name)
            waiting += [] if tree is None else _imports(name, _nodes(tree, late))
    return trees


def dynamic_names(tree: ast.Module) -> set[str]:
    """Return the names in a source that can import or run other code without naming it, such as `exec`."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.alias(name=name):
                found.add(name)
            case ast.Attribute(attr="import_module" | "exec_module" | "load_module" as name):
                found.add(name)
    return found & {"import_module", "exec_module", "load_module", "__import__", "exec", "eval", "runpy"}


def used_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the functions and classes of a source use, also as strings."""
    code = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    for node in (node for part in ast.walk(tree) if isinstance(part, code) for node in ast.walk(part)):
        match node:
            case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)) | ast.Constant(value=str(name)):
                yield name
            case ast.ClassDef(name=str(name)) | ast.FunctionDef(name=str(name)) | ast.alias(name=str(name)):
                yield name


def versions(modules: Iterable[str]) -> list[str]:
    """Return the versions of the installed packages that contain these modules."""
    packages = {name.partition(".")[0] for name in modules if not is_own_module(name)} - _KNOWN
    installed = importlib.metadata.packages_distributions() if packages else {}
    names = sorted(name for package in packages for name in installed.get(package, ()))
    return [f"{name} {importlib.metadata.version(name)}" for name in names]


@functools.cache
def _holds_packages(folder: Path) -> bool:
    return next(folder.glob("*.dist-info"), None) is not None


@functools.cache
def _installed() -> frozenset[str]:
    return frozenset(importlib.metadata.packages_distributions())


def _file(name: str) -> Path | None:
    """Return the file of a module, or None if it has none. The module is not imported."""
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
    """Return the parsed source of a module, without comments and without `if __name__ == "__main__"`."""
    file = _file(name)
    if file is None or file.suffix != ".py" or not file.is_file():
        return None
    tree = ast.parse(file.read_bytes())
    script = "__name__ == '__main__'"
    tree.body = [part for part in tree.body if not (isinstance(part, ast.If) and ast.unparse(part.test) == script)]
    return tree


def _nodes(tree: ast.AST, late: bool) -> Iterator[ast.AST]:
    """Yield the nodes of a source; those inside functions only if `late`."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if late or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _nodes(node, late)


def _imports(name: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the modules that a source imports, and the packages that contain them."""
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
