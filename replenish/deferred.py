"""Import the names of a package when they are first used, so that a command's help does not wait for a library."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's `__getattr__`, `__dir__` (PEP 562) and `__all__`.

    `homes` maps each name to the module within the package that has it; a module maps to itself. Hide the three from
    type checkers, which otherwise accept any name of the package.

    Example:
        >>> get, names, exported = attributes("replenish", {"theory": "theory", "FlipFlop": "orders"})
        >>> get("FlipFlop").__name__, exported, "__version__" in names()
        ('FlipFlop', ['FlipFlop', 'theory'], True)
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(f"{package}.{homes[name]}")
        value = home if homes[name] == name else getattr(home, name)
        setattr(sys.modules[package], name, value)  # later uses find it without this function
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names, sorted(homes)
