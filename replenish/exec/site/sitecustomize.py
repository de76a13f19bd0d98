"""Imported by every Python process of a run with an order, at its start: waits for torch's DataLoader.

It needs the standard library alone, and imports nothing of replenish before the first loader is made: a script may
set what numpy and torch read when they are loaded. `replenish.exec.environment` puts this folder on the path.
"""

import atexit
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_the_next_sitecustomize() -> None:
    """Import the one that this one hides, if there is one."""
    paths = [path for path in sys.path if os.path.abspath(path) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _prepare(loader_class: Any) -> None:
    """Have loaders noticed when they are made and asked what to iterate: see `replenish.torch.using.install`."""
    make, base = loader_class.__init__, loader_class._index_sampler

    @functools.wraps(make)
    def made(loader: Any, *args: Any, **kwargs: Any) -> None:
        make(loader, *args, **kwargs)
        loader._index_sampler  # noqa: B018

    def index_sampler(loader: Any) -> Any:
        # Imported now, when torch is all there.
        from replenish.exec import hook

        return hook.index_sampler(loader, base.fget(loader))

    # What an inner `using` goes back to.
    made._replenish_base = make  # type: ignore[attr-defined]
    index_sampler._replenish_base = base  # type: ignore[attr-defined]
    loader_class.__init__, loader_class._index_sampler = made, property(index_sampler)


def _write_sources() -> None:
    """Write what this process has imported, also where it makes no loader itself but starts what does."""
    folder = json.loads(os.environ.get("REPLENISH_EXEC", "{}")).get("records", "")
    if not os.path.isdir(folder):  # an audit has none, and that of `exec` is no longer there
        return
    try:
        from replenish.exec.sources import write_sources
    except ImportError:  # an interpreter with packages of its own
        return
    write_sources(folder)


def _watch_for_leftovers(records: str, since: float, until: float) -> None:
    """Write down which files are read that others have written: a checkpoint, perhaps, that the script goes on from."""
    known: set[str] = set()
    cached = ("__pycache__", os.path.join(os.path.expanduser("~"), ".cache"), os.path.dirname(records))

    def hear(event: str, arguments: Any) -> None:
        if event != "open" or not isinstance(arguments[0], str) or arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        with contextlib.suppress(OSError):  # whatever is wrong with the file, the script is to hear it by itself
            path = os.path.abspath(arguments[0])
            if path in known or any(part in path for part in cached) or not since < os.stat(path).st_mtime < until:
                return
            known.add(path)
            with open(os.path.join(records, f"{os.getpid()}.leftovers"), "a", encoding="utf-8") as file:
                file.write(f"{path}\n")

    sys.addaudithook(hear)


class _WaitForTorch(importlib.abc.MetaPathFinder):
    """Finds nothing, but sees what is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> "importlib.machinery.ModuleSpec | None":
        """Have DataLoaders prepared when their module has been executed."""
        if name != "torch.utils.data.dataloader":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_prepare(module: Any) -> None:
                execute(module)
                _prepare(module.DataLoader)

            spec.loader.exec_module = execute_and_prepare  # type: ignore[method-assign]
        return spec


_run_the_next_sitecustomize()
if os.environ.get("REPLENISH_EXEC"):
    os.environ.setdefault("REPLENISH_EXEC_FIRST", str(os.getpid()))  # the processes that this one starts inherit it
    sys.meta_path.insert(0, _WaitForTorch())
    if "--multiprocessing-fork" not in sys.orig_argv:  # workers of loaders are many, and import what others do
        atexit.register(_write_sources)
    _told = json.loads(os.environ["REPLENISH_EXEC"])
    if _told.get("others"):
        _watch_for_leftovers(_told["records"], *_told["others"])
