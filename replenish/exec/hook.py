"""What happens to the loaders of this process, as its environment says; called by `site/sitecustomize.py`."""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
from typing import Any

from replenish.exec.environment import FIRST_PROCESS, VARIABLE, OrderRequest
from replenish.exec.records import RecordWriter
from replenish.exec.sources import write_sources
from replenish.torch.shuffle_patch import ShufflePatch


def seen(loader: Any) -> None:
    """Give the order to a loader that the script has just made, or audit it.

    An order that does not fit the loader's sizes ends the script with a sentence: it is not the script's fault.
    """
    try:
        _receiver().see(loader)
    except (TypeError, ValueError, OSError) as error:
        print(f"replenish: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def write_records() -> None:
    """Write the latest counts of this process's loaders, if it has made any."""
    if _receiver.cache_info().currsize:
        _writer().write()


@functools.cache
def _receiver() -> Any:
    """Return what takes the loaders of this process: an `Auditor` or a `ShufflePatch`."""
    if "audit" in json.loads(os.environ[VARIABLE]):
        from replenish.exec.auditor import process_auditor

        return process_auditor()
    request = OrderRequest.from_environment()
    write_sources(request.records)
    patch = ShufflePatch(
        request.order,
        request.seed,
        {name: _loaded(value) for name, value in request.options.items()},
        everything=request.everything,
        first_epoch=request.first_epoch,
        changed=lambda: _writer().changed(),
        draws_alone=_was_started_by_another,
    )
    atexit.register(write_records)
    return patch


@functools.cache
def _writer() -> RecordWriter:
    return RecordWriter(OrderRequest.from_environment().records, _receiver().records)


def _loaded(option: Any) -> Any:
    if not str(option).endswith(".npy"):
        return option
    import numpy as np

    return np.load(option, allow_pickle=False)


def _was_started_by_another() -> bool:
    """Whether another Python process of the run has started this one, in whatever way: others may be beside it."""
    return os.environ[FIRST_PROCESS] != str(os.getpid())
