"""What happens to the loaders of this process, as its environment says; called by `site/sitecustomize.py`."""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from typing import Any

from torch.utils.data import DataLoader

from replenish.exec.environment import FIRST_PROCESS, RECORD_VARIABLE, VARIABLE, OrderRequest
from replenish.exec.records import RecordWriter
from replenish.exec.sources import write_sources
from replenish.torch.shuffle_patch import ShufflePatch


def seen(loader: Any) -> None:
    """Give the order to a loader that the script has just made, and record what it draws, as the environment says.

    An order that does not fit the loader's sizes ends the script with a sentence: it is not the script's fault.
    """
    try:
        if (patch := _shuffle_patch()) is not None:
            patch.see(loader)
        if (recorder := _recorder()) is not None and isinstance(loader, DataLoader):
            recorder.see(loader)
    except (TypeError, ValueError, OSError) as error:
        print(f"replenish: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def write_records() -> None:
    """Write the latest counts and draws of this process's loaders, if it has made any."""
    if _writer.cache_info().currsize:
        _writer().write()
    if _recorder.cache_info().currsize and (recorder := _recorder()) is not None:
        recorder.close()


def forget() -> None:
    """Give the loaders their own shuffling back, and read the environment again."""
    if _shuffle_patch.cache_info().currsize and (patch := _shuffle_patch()) is not None:
        patch.remove()
    for each in (_shuffle_patch, _recorder, _writer):
        each.cache_clear()


@functools.cache
def _recorder() -> Any:
    """Return the `Recorder` of this process's loaders; None if they are not recorded."""
    if RECORD_VARIABLE not in os.environ and "audit" not in json.loads(os.environ[VARIABLE]):
        return None  # before the audit is imported
    from replenish.exec.auditor import process_auditor

    patch = _shuffle_patch()
    return process_auditor(None if patch is None else patch.hook)


@functools.cache
def _shuffle_patch() -> ShufflePatch | None:
    """Return what gives the order to this process's loaders; None if they keep theirs."""
    if "audit" in json.loads(os.environ[VARIABLE]):
        return None
    request = OrderRequest.from_environment()
    write_sources(request.records)
    atexit.register(_end)
    return ShufflePatch(
        request.order,
        request.seed,
        {name: _loaded(value) for name, value in request.options.items()},
        everything=request.everything,
        first_epoch=request.first_epoch,
        changed=lambda: _writer().changed(),
        draws_alone=_was_started_by_another,
    )


@functools.cache
def _writer() -> RecordWriter:
    patch = _shuffle_patch()
    assert patch is not None
    return RecordWriter(OrderRequest.from_environment().records, patch.records)


def _end() -> None:
    if VARIABLE in os.environ:  # a script may have removed it
        _writer().end()


def _loaded(option: Any) -> Any:
    if not str(option).endswith(".npy"):
        return option
    import numpy as np

    return np.load(option, allow_pickle=False)


def _was_started_by_another() -> bool:
    """Whether another Python process of the run has started this one, in whatever way: others may be beside it."""
    return os.environ[FIRST_PROCESS] != str(os.getpid())
