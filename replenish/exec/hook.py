"""The order of this process's loaders, or their audit, as its environment says; called by `site/sitecustomize.py`."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from replenish.exec.audit_task import AuditTask
from replenish.exec.auditor import process_auditor
from replenish.exec.environment import FIRST_PROCESS, Assignment
from replenish.exec.records import write_record
from replenish.exec.sources import write_sources
from replenish.torch.replacement import Replacement
from replenish.torch.using import to_iterate


def index_sampler(loader: DataLoader[Any], own: Any) -> Any:
    """Return what a loader of this process is to iterate instead of `own`.

    An order that cannot be had in a loader's sizes ends the script with a sentence: it is not the script's fault.
    """
    if _is_audit():
        if "_replenish_loader" not in vars(loader):
            process_auditor().see(loader)
        return own
    try:
        return to_iterate(loader, own, _replacement())
    except (TypeError, ValueError, OSError) as error:
        print(f"replenish: {error}", file=sys.stderr)
        raise SystemExit(2) from None


@functools.cache
def _is_audit() -> bool:
    return AuditTask.from_environment() is not None


@functools.cache
def _replacement() -> Replacement:
    told = Assignment.from_environment()
    write_sources(told.records)
    options = {
        name: np.load(value, allow_pickle=False) if str(value).endswith(".npy") else value
        for name, value in told.options.items()
    }
    recorder = functools.partial(write_record, told.records)
    return Replacement(told.order, told.seed, options, recorder, _was_started_by_another)


def _was_started_by_another() -> bool:
    """Tell whether another Python process of the run has started this one, in whatever way: others may be beside it."""
    return os.environ[FIRST_PROCESS] != str(os.getpid())
