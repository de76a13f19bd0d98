"""Gives an order to the loaders of this process and records them, as its environment asks.

`site/sitecustomize.py` calls it.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
from typing import Any

import numpy as np

from replenish.exec.environment import FIRST_PROCESS, RECORD_VARIABLE, VARIABLE, AuditTask, OrderRequest
from replenish.exec.records import RecordWriter
from replenish.exec.sources import write_sources
from replenish.torch.shuffle_patch import ShufflePatch


def seen(loader: Any) -> None:
    """Give the order to a loader that the script has just made, and record what it draws, as the environment asks.

    If the order does not fit the loader's sizes, the script ends with a message and no traceback, since it did nothing
    wrong.
    """
    try:
        hook = _hook()
        if hook.patch is not None:
            hook.patch.see(loader)
        if hook.recorder is not None:
            hook.recorder.see(loader)
    except (TypeError, ValueError, OSError) as error:
        print(f"replenish: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def write_records() -> None:
    """Write the latest counts and draws of this process's loaders, if it has made any."""
    if _hook.cache_info().currsize:
        hook = _hook()
        if hook.writer is not None:
            hook.writer.write()
        if hook.recorder is not None:
            hook.recorder.close()


def forget() -> None:
    """Give the loaders their own shuffling back, and read the environment anew at the next loader."""
    if _hook.cache_info().currsize and (patch := _hook().patch) is not None:
        patch.remove()
    _hook.cache_clear()


class _Hook:
    """The patch that gives loaders the order, the writer of their records, and the recorder of their draws."""

    def __init__(self) -> None:
        self.patch: ShufflePatch | None = None
        self.writer: RecordWriter | None = None
        self.recorder: Any = None
        if VARIABLE in os.environ:
            request = OrderRequest.from_environment()
            write_sources(request.records)
            self.patch = ShufflePatch(
                request.order,
                request.seed,
                {name: _loaded(value) for name, value in request.options.items()},
                everything=request.everything,
                first_epoch=request.first_epoch,
                changed=lambda: writer.changed(),
                draws_alone=_was_started_by_another,
            )
            writer = self.writer = RecordWriter(request.records, self.patch.records)
            atexit.register(writer.end)
        if RECORD_VARIABLE in os.environ:
            from replenish.exec.recorder import Recorder

            # The recorder must see what the order draws.
            self.recorder = Recorder(AuditTask.from_environment(), self.patch)


_hook = functools.cache(_Hook)


def _loaded(option: Any) -> Any:
    return np.load(option, allow_pickle=False) if str(option).endswith(".npy") else option


def _was_started_by_another() -> bool:
    """Return whether another Python process of the run started this one, so that several may train at once."""
    return os.environ[FIRST_PROCESS] != str(os.getpid())
