"""The audit of this process's loaders: each when the script first trains with it, as the script has made it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, Sampler, TensorDataset

from replenish.auditing import audit
from replenish.exec.audit_task import AuditTask
from replenish.torch.loader_record import calling_place

# In a loader's __dict__: its watch.
_MARK = "_replenish_audited"
#: Of a stream, which has to be read to be known, so many items an epoch at most.
STREAM_ITEMS = 100_000


class Auditor:
    """Watches the loaders of a process."""

    def __init__(self, task: AuditTask) -> None:
        self.task = task
        self.batches = 0  # of training, handed out by all loaders
        self._number = 0
        self._busy = False
        self.told: dict[int, Any] = {}  # by id: those whose `set_epoch` the script has called, and so will again

    def index_sampler(self, loader: DataLoader[Any], own: Any) -> Any:
        """Return what a loader is to iterate instead of `own`: the same, watched."""
        if self._busy:  # a loader that the audit itself makes
            return own
        watch: Watch | None = vars(loader).get(_MARK)
        if watch is None:
            watch = vars(loader)[_MARK] = Watch(self, loader, self._number, calling_place().line)
            self._number += 1
        for owner in watch.owners():
            self._count_set_epoch(owner)
        return WatchedIndices(own, watch)

    def _count_set_epoch(self, owner: Any) -> None:
        """Have it noticed if the script calls `set_epoch` of a sampler or a dataset."""
        kind = type(owner)
        method = getattr(kind, "set_epoch", None)
        if method is None or hasattr(method, "_replenish_counted"):
            return

        @functools.wraps(method)
        def set_epoch(instance: Any, *args: Any, **kwargs: Any) -> Any:
            self.told[id(instance)] = instance
            return method(instance, *args, **kwargs)

        set_epoch._replenish_counted = True  # type: ignore[attr-defined]
        kind.set_epoch = set_epoch  # of the class: an instance may have to be pickled for a worker

    def audit(self, loader: DataLoader[Any], before_epoch: Callable[[int], object] | None) -> dict[str, Any]:
        """Return what is found of a loader."""
        self._busy = True
        try:
            is_stream = isinstance(loader.dataset, IterableDataset)
            return audit(
                loader,
                self.task.epochs,
                None if is_stream else labels_of(loader.dataset),
                before_epoch=before_epoch,
                at_most=STREAM_ITEMS if is_stream else 2**22,
            ).to_dict()
        finally:
            self._busy = False


class Watch:
    """One loader: where it was made, and what has become of it."""

    def __init__(self, auditor: Auditor, loader: DataLoader[Any], number: int, place: str) -> None:
        self._auditor, self._loader, self._number = auditor, loader, number
        self._found: dict[str, Any] = {"place": place, "state": "made"}
        self._write()

    def _write(self) -> None:
        self._auditor.task.write(self._number, self._found)

    def owners(self) -> list[Any]:
        """Return the samplers, and the dataset, that have a `set_epoch`."""
        batch_sampler = self._loader.batch_sampler
        parts = (batch_sampler, getattr(batch_sampler, "sampler", None), self._loader.sampler, self._loader.dataset)
        return [part for part in parts if hasattr(part, "set_epoch")]

    def begin_pass(self) -> bool:
        """Say whether a pass that begins is one of training, and audit the loader if it is the first."""
        if not torch.is_grad_enabled():
            if self._found["state"] == "made":
                self._found["state"] = "evaluated"
                self._write()
            return False
        if self._found["state"] != "audited":
            told = (owner.set_epoch for owner in self.owners() if id(owner) in self._auditor.told)
            before_epoch = next(told, None)
            self._found["state"] = "audited"
            try:
                self._found["audit"] = self._auditor.audit(self._loader, before_epoch)
            except (TypeError, ValueError) as error:  # the script is to go on as without an audit
                self._found["refused"] = str(error)
            self._write()
        return True

    @property
    def goes_on(self) -> bool:
        """Whether the script is left to its own end."""
        return self._auditor.task.steps is None

    def hand_out(self, index: Any) -> Any:
        """Count a batch of training, and end the script after enough of them."""
        if self._auditor.task.steps is not None and self._auditor.batches >= self._auditor.task.steps:
            sys.exit(0)
        self._auditor.batches += 1
        return index


class WatchedIndices(Sampler[Any]):
    """What a loader iterates: its own sampler, whose first pass of training is preceded by the audit."""

    def __init__(self, own: Any, watch: Watch) -> None:
        self._own, self._watch = own, watch

    def __len__(self) -> int:
        return len(self._own)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also while it is being copied, when there is no `_own` yet
            raise AttributeError(name)
        return getattr(self._own, name)

    def __iter__(self) -> Iterator[Any]:
        is_training, indices = self._watch.begin_pass(), iter(self._own)
        # Without an end to be counted to, whoever looks at what draws finds the sampler's own pass.
        return map(self._watch.hand_out, indices) if is_training and not self._watch.goes_on else indices


def labels_of(dataset: Any) -> Any:
    """Return the labels that a dataset says it has, as torchvision's do in `targets`; None if it says none."""
    if isinstance(dataset, TensorDataset) and len(dataset.tensors) > 1:
        found: Any = dataset.tensors[-1]
    else:
        found = getattr(dataset, "targets", getattr(dataset, "labels", None))
    try:
        values = np.asarray(found)
        length = len(dataset)
    except (TypeError, ValueError, RuntimeError):  # ragged, on another device, without a length
        return None
    whole = values.dtype.kind in "iub"  # floats may be targets of a regression: nothing to be mixed by
    return values if whole and values.shape == (length,) else None
