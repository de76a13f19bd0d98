"""Imported at the start of every Python process of a run, to wait for the classes of loaders.

It needs only the standard library, and imports nothing of replenish before the first loader is made, since the script
may set variables that numpy and torch read when they are loaded. `replenish.exec.environment` puts this folder on the
path.
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

# Modules, and their loader classes whose `__init__` does not call that of another loader class.
_LOADER_CLASSES = {
    "torch.utils.data.dataloader": "DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader": "StatefulDataLoader",
}
_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_next_sitecustomize() -> None:
    """Import the `sitecustomize` that this one hides, if there is one."""
    paths = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _prepare(loader_class: Any) -> None:
    """Show each new loader to `replenish.exec.hook`."""
    make = loader_class.__init__

    @functools.wraps(make)
    def made(loader: Any, *args: Any, **kwargs: Any) -> None:
        make(loader, *args, **kwargs)
        # Imported only now, when torch is completely loaded.
        from replenish.exec import hook

        hook.seen(loader)

    made._replenish_base = make  # type: ignore[attr-defined]  # inside `using`, `LoaderHook` wraps this instead
    loader_class.__init__ = made


def _write_sources() -> None:
    """Write what this process has imported, even if it makes no loader itself but starts a process that does."""
    folder = json.loads(os.environ.get("REPLENISH_EXEC", "{}")).get("records", "")
    if not os.path.isdir(folder):  # an audit has no such folder, and `exec` has already removed its own
        return
    try:
        from replenish.exec.sources import write_sources
    except ImportError:  # an interpreter in which replenish is not installed
        return
    write_sources(folder)


class _WaitForLoaders(importlib.abc.MetaPathFinder):
    """Notices when a module with a class of loaders is imported."""

    def __init__(self) -> None:
        self._classes = {**_LOADER_CLASSES}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> "importlib.machinery.ModuleSpec | None":
        """Prepare a class of loaders as soon as its module has been executed."""
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
    os.environ.setdefault("REPLENISH_EXEC_FIRST", str(os.getpid()))  # inherited by the processes that this one starts
    sys.meta_path.insert(0, _WaitForLoaders())
    if "--multiprocessing-fork" not in sys.orig_argv:  # the workers of loaders import nothing that others do not
        atexit.register(_write_sources)
