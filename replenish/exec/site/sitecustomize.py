"""Imported by every Python process of a run with an order, at its start: waits for the classes of loaders.

It needs only the standard library, and imports nothing of replenish before the first loader is made: a script may
set what numpy and torch read when they are loaded. `replenish.exec.environment` puts this folder on the path.
"""

import atexit
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from typing import Any

# Modules, and the classes of loaders in them whose `__init__` does not call another's.
_LOADER_CLASSES = {
    "torch.utils.data.dataloader": "DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader": "StatefulDataLoader",
}
_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_next_sitecustomize() -> None:
    """Import the one that this one hides, if there is one."""
    paths = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _prepare(loader_class: Any) -> None:
    """Have `replenish.exec.hook` see each loader when it is made."""
    make = loader_class.__init__

    @functools.wraps(make)
    def made(loader: Any, *args: Any, **kwargs: Any) -> None:
        make(loader, *args, **kwargs)
        # Imported now, when torch is all there.
        from replenish.exec import hook

        hook.seen(loader)

    made._replenish_base = make  # type: ignore[attr-defined]  # what `LoaderHook` wraps instead, inside `using`
    loader_class.__init__ = made


def _write_sources() -> None:
    """Write what this process has imported, also where it makes no loader itself but starts what does."""
    folder = json.loads(os.environ.get("REPLENISH_EXEC", "{}")).get("records", "")
    if not os.path.isdir(folder):  # an audit has none, and `exec` has removed its own
        return
    try:
        from replenish.exec.sources import write_sources
    except ImportError:  # an interpreter with packages of its own
        return
    write_sources(folder)


class _WaitForLoaders(importlib.abc.MetaPathFinder):
    """Finds nothing, but sees what is imported."""

    def __init__(self) -> None:
        self._classes = {**_LOADER_CLASSES}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> "importlib.machinery.ModuleSpec | None":
        """Have a class of loaders prepared when its module has been executed."""
        if name not in self._classes:
            return None
        class_name = self._classes.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_prepare(module: Any) -> None:
                execute(module)
                _prepare(getattr(module, class_name))

            spec.loader.exec_module = execute_and_prepare  # type: ignore[method-assign]
        return spec


_run_the_next_sitecustomize()
if os.environ.get("REPLENISH_EXEC") or os.environ.get("REPLENISH_RECORD"):
    os.environ.setdefault("REPLENISH_EXEC_FIRST", str(os.getpid()))  # the processes that this one starts inherit it
    sys.meta_path.insert(0, _WaitForLoaders())
    if "--multiprocessing-fork" not in sys.orig_argv:  # workers of loaders are many, and import what others do
        atexit.register(_write_sources)
