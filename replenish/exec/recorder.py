"""The recorder of this process: logs what its loaders draw in the script's own passes, and changes nothing."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from replenish.auditing.hashing import sample_hashes
from replenish.auditing.reading import sampler_chain
from replenish.exec.draw_log import SUFFIX, append_chunk, is_closed, pack, pack_batches, wait_until
from replenish.exec.environment import AuditTask
from replenish.exec.loader_facts import loader_facts, order_of, probe
from replenish.torch.describe import describe_loader
from replenish.torch.loader_hook import LoaderHook
from replenish.torch.shuffle_patch import ShufflePatch

# The attributes of a loader and of its iterator that hold its `_Loader` and its `_Pass`.
_LOADER, _PASS = "_replenish_loader", "_replenish_pass"
_FLUSH_SAMPLES, _FLUSH_SECONDS = 2**16, 1.0
_SAVING = 1.0  # seconds for the other ranks to write their part of a checkpoint
_OTHER_RANKS = 20.0  # seconds in which all ranks should reach the batch at which the run is stopped


class Recorder:
    """Records the loaders of a process.

    For each loader the log has the indices of every batch, or hashes of its samples if it has no indices; how many
    batches the loop got; and after which of them an optimizer made a step. A pass counts as training if gradients are
    on when it begins.
    """

    def __init__(self, task: AuditTask, patch: ShufflePatch | None = None) -> None:
        self.task = task
        self.patch = patch
        self.active = True
        self._hook = LoaderHook() if patch is None else patch.hook
        self._wrapped: dict[type, Any] = {}  # classes whose `__iter__` or `__next__` is wrapped
        self._local = threading.local()  # `starting`: the pass whose iterator is being made
        self._lock = threading.RLock()
        self._process = 0
        self._batches = self._optimizer_steps = 0
        self.order = itertools.count()  # numbers new loaders and passes in one sequence
        self._observed: dict[int, weakref.ref[Any]] = {}  # samplers, by their ids
        self._seen: list[tuple[weakref.ref[Any], _Loader]] = []
        self._open: list[_Pass] = []  # each loader's passes that have begun, until its next one begins
        self._trained: dict[int, _Pass] = {}  # passes that handed out a batch since the last step of an optimizer
        self._latest: list[_Pass] = []  # the passes whose batches the latest step used
        self._optimizers_seen = False
        self._optimizer: weakref.ref[Any] | None = None
        self._stopped = False
        self._changes = 0  # at how many batches in a row a checkpoint had changed
        self._checkpoints: dict[str, int] = {}  # when each was written
        self._folder = Path.cwd()
        atexit.register(self.close)

    def see(self, loader: DataLoader[Any]) -> _Loader:
        """Number a loader that the script has made, and watch the passes over it."""
        with self._lock:
            entry = _Loader(len(self._seen), loader, next(self.order))
            # A script or a framework may make a new loader for each epoch: it continues one that is gone.
            gone = [each.whole for known, each in self._seen if known() is None and each.facts == entry.facts]
            entry.whole = max(gone, default=0)
            self._seen.append((weakref.ref(loader), entry))
        vars(loader)[_LOADER] = entry
        for kind in type(loader).__mro__:
            if "__iter__" in vars(kind) and kind.__module__.startswith(("torch.", "torchdata.")):
                self._wrap_iter(kind)
                break
        self.write({"kind": "loader", "loader": entry.number, "at": entry.at, **entry.facts})
        return entry

    def write(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Append a chunk to this process's log; the first one identifies the process."""
        if not self.active:
            return
        with self._lock:
            path = Path(self.task.records) / f"{os.getpid()}{SUFFIX}"
            if self._process != os.getpid():  # a fork begins a log of its own
                self._process = os.getpid()
                append_chunk(path, {"kind": "process", "started": time.time()})
            append_chunk(path, header, payload)

    def flush(self) -> None:
        """Write the draws that are not written yet."""
        for each in list(self._open):
            each.flush()

    def end_script(self) -> None:
        """End the script: it had the requested number of epochs or batches."""
        self.flush()
        Path(self.task.records, f"{os.getpid()}.ended").touch()
        sys.exit(0)

    # ---- Passes ----

    def _wrap_iter(self, kind: Any) -> None:
        if kind in self._wrapped:
            return
        own = self._wrapped[kind] = kind.__iter__

        @functools.wraps(own)
        def begin(loader: Any) -> Iterator[Any]:
            return self._begin(loader, own) if self.active else own(loader)

        kind.__iter__ = begin

    def _begin(self, loader: Any, own: Any) -> Iterator[Any]:
        entry: _Loader = vars(loader).get(_LOADER) or self.see(loader)
        training = torch.is_grad_enabled()
        if training:
            self._watch_optimizers()
            self._trained.clear()  # no step followed these batches: they were of an evaluation with gradients on
            if self.task.epochs is not None and entry.whole >= self.task.epochs:
                self.end_script()
        sampler = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
        if entry.sampler is not sampler:  # a framework may replace it after the loader was made
            entry.sampler = sampler
            entry.has_indices = not entry.is_stream and self._observe(sampler)
            entry.owner = next((each for each in sampler_chain(loader) if hasattr(each, "set_epoch")), None)
        if entry.passes == 0 and self.task.facts:
            self._write_facts(entry, loader, probed=training)
        for each in [each for each in self._open if each.loader is entry]:
            each.flush()  # its loop has all of its batches, unless two loops share the loader
        self._open = [each for each in self._open if each.loader is not entry or not each.is_done]
        started = _Pass(self, entry, training)
        self._open.append(started)
        self._local.starting = started
        try:
            iterator = own(loader)
        finally:
            self._local.starting = None
        vars(iterator)[_PASS] = started
        self._wrap_next(type(iterator))
        return iterator

    def _write_facts(self, entry: _Loader, loader: Any, *, probed: bool) -> None:
        header, payload = loader_facts(loader)
        self.write({"kind": "facts", "loader": entry.number, **header}, payload)
        if probed and os.environ.get("RANK", "0") in ("", "0") and (findings := probe(loader, self)):
            self.write({"kind": "findings", "loader": entry.number, "findings": findings})

    def _observe(self, sampler: Any) -> bool:
        """Record the passes over a sampler, once even if several loaders share it; return whether that is possible."""
        known = self._observed.get(id(sampler))
        if known is not None and known() is sampler:
            return True
        if not self._hook.replace_iter(sampler, self._draw):
            return False
        self._observed[id(sampler)] = weakref.ref(sampler)
        return True

    def _draw(self, sampler: Any, own: Any) -> Iterator[Any]:
        starting: _Pass | None = getattr(self._local, "starting", None)
        return own() if starting is None or starting.loader.sampler is not sampler else _Follower(starting, own())

    def _wrap_next(self, kind: Any) -> None:
        kind = next(each for each in kind.__mro__ if "__next__" in vars(each))
        if kind in self._wrapped:
            return
        own = self._wrapped[kind] = kind.__next__

        @functools.wraps(own)
        def hand_out(iterator: Any) -> Any:
            current: _Pass | None = vars(iterator).get(_PASS)
            # A subclass's `__next__` calls this one as `super().__next__`.
            if current is None or not self.active or current.depth:
                return own(iterator)
            current.depth = 1
            try:
                if current.training:
                    self._before_training_batch()
                batch = own(iterator)
            except StopIteration:
                current.finish()
                raise
            finally:
                current.depth = 0
            current.after_batch(batch)
            return batch

        kind.__next__ = hand_out

    # ---- Optimizers, checkpoints and the end of a run ----

    def _watch_optimizers(self) -> None:
        if not self._optimizers_seen:
            self._optimizers_seen = True
            register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer: Any, *ignored: Any) -> None:
        """Record a step of the first optimizer; ignore others, such as a second network's."""
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = weakref.ref(optimizer)
        if self._optimizer() is not optimizer:
            return
        if self._trained:  # otherwise the loop got this step's batches before the previous step
            self._latest = list(self._trained.values())
            self._trained.clear()
        self._optimizer_steps += bool(self._latest)
        for each in self._latest:
            each.steps.append(each.handed)
        if self._stopped:  # the process may save and end before its next batch
            self._write_counts()

    def _before_training_batch(self) -> None:
        """End or stop the script here, if the task says so."""
        if self.task.steps is not None and self._batches >= self.task.steps:
            self.end_script()
        if self.task.stop is not None:
            self.flush()  # another rank may kill this one at any time
            self._stop_run(self.task.stop)

    def trained_with(self, current: _Pass) -> None:
        """Count a training batch that was handed out."""
        self._batches += 1
        self._trained[id(current)] = current

    def _stop_run(self, after: int) -> None:
        found, changed = self._look_for_checkpoints()
        self._changes = self._changes + 1 if changed else 0
        if self._stopped or self._batches < after:
            return
        if not self.task.kill:
            self._stopped = True
            self._wait_for_other_ranks()
            self._write_counts()
            os.kill(os.getpid(), signal.SIGTERM)
        # Wait for a batch at which no checkpoint changed, so that other ranks have finished writing theirs. A script
        # that saves at every batch never gets there.
        elif _rank() == 0 and found and (not changed or self._changes > 2):
            if changed:
                time.sleep(_SAVING)
                self._look_for_checkpoints()
            self._kill_run()

    def _wait_for_other_ranks(self) -> None:
        """Wait until all ranks get here: as soon as one ends, a launcher may end the others, wherever they are."""
        folder = Path(self.task.records)
        (folder / f"{os.getpid()}.stop").touch()
        wait_until(lambda: len(list(folder.glob("*.stop"))) >= _ranks(), _OTHER_RANKS)

    def _kill_run(self) -> None:
        """Kill all processes of the run at once: any that is left could save another checkpoint."""
        for path in Path(self.task.records).glob(f"*{SUFFIX}"):
            if not is_closed(path) and int(path.stem) != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(path.stem), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def _look_for_checkpoints(self) -> tuple[bool, bool]:
        """Write which checkpoints have changed; return whether there are any, and whether any changed."""
        found: dict[str, int] = {}
        for path in (path for pattern in self.task.checkpoints for path in self._folder.glob(pattern)):
            with contextlib.suppress(OSError):  # it was removed just now
                found[str(path.relative_to(self._folder))] = path.stat().st_mtime_ns
        changed = {path: time for path, time in found.items() if self._checkpoints.get(path) != time}
        if changed:
            self._write_counts(changed)
        self._checkpoints = found
        return bool(found), bool(changed)

    def _write_counts(self, changed: dict[str, int] | None = None) -> None:
        """Write how far the training is, and the time at which each changed checkpoint was written."""
        counts = {"handed": self._batches, "steps": self._optimizer_steps}
        self.write({"kind": "counts", "changed": changed or {}, **counts})

    def close(self) -> None:
        """Write all that is left, at the end of the process."""
        atexit.unregister(self.close)  # once only: `exec` calls this earlier, and then removes the log
        if self.task.stop is not None and self._batches:
            self._look_for_checkpoints()
        self.flush()
        if self._open:
            self.write({"kind": "closed"})


class _Loader:
    """One loader: its facts, and the sampler that it draws from."""

    def __init__(self, number: int, loader: DataLoader[Any], at: int) -> None:
        description = describe_loader(loader)
        self.number = number
        self.is_stream = description.kind == "stream"
        self.facts = {
            "dataset": type(loader.dataset).__name__,
            "num_samples": description.num_samples,
            "batch_size": description.batch_size,
            "is_stream": self.is_stream,
        }
        self.at = at
        self.whole = 0  # training passes that reached their end
        self.sampler: Any = None
        self.owner: Any = None  # the sampler that has a `set_epoch`
        self.has_indices = False
        self.passes = 0


class _Pass:
    """One pass over a loader, and what it has drawn since the last chunk."""

    def __init__(self, recorder: Recorder, loader: _Loader, training: bool) -> None:
        self.recorder, self.loader, self.training = recorder, loader, training
        self._order = order_of(loader.sampler)
        self.number, self.at = loader.passes, next(recorder.order)
        loader.passes += 1
        self.handed = self.depth = self._drawn = 0
        self.steps: list[int] = []
        self._batches: list[Any] = []
        self._samples, self._flushed = 0, time.monotonic()
        self._begun = self.is_done = False
        try:
            self._length: int | None = None if loader.is_stream else len(loader.sampler)
        except (TypeError, NotImplementedError):
            self._length = None

    def ended(self) -> None:
        """Record that the sampler is exhausted. A loader with workers makes two iterators; ignore the unused one."""
        if self._drawn:
            self.finish()

    def after_batch(self, batch: Any) -> None:
        """Count a batch that the loop gets, and record its contents if it has no indices."""
        self.handed += 1
        if not self.loader.has_indices:
            hashes = [int.from_bytes(each[:8], "little", signed=True) for each in sample_hashes(batch)]
            self.record(hashes)
        if self.training:
            self.recorder.trained_with(self)

    def finish(self) -> None:
        """Record that the pass reached its end."""
        if not self.is_done:
            self.is_done = True
            if self.training:
                self.loader.whole += 1
            self.flush()

    def flush(self) -> None:
        """Write what was drawn since the last time."""
        if not self._begun:
            self._begun = True
            epoch = getattr(self.loader.owner, "epoch", None)
            header = {"kind": "pass", "at": self.at, "training": self.training, "rank": _rank()}
            number = epoch if isinstance(epoch, int) else None
            self._write({**header, "told": number, "indices": self.loader.has_indices, "order": self._order})
        batches, self._batches, self._samples, self._flushed = self._batches, [], 0, time.monotonic()
        if batches:
            lengths = np.array([len(each) for each in batches], dtype=np.int64)
            indices = itertools.chain.from_iterable(batches)
            packed, payload = pack_batches(np.fromiter(indices, dtype=np.int64, count=int(lengths.sum())), lengths)
            self._write({"kind": "batches", **packed}, payload)
        steps, payload = pack(np.array(self.steps, dtype=np.int64))
        self.steps = []
        self._write({"kind": "state", "handed": self.handed, "whole": self.is_done, **steps}, payload)

    def record(self, item: Any) -> None:
        """Record an item of the sampler: a batch of indices, or one index."""
        batch = item if isinstance(item, (list, tuple, np.ndarray)) else [item]
        if not self._drawn and self.recorder.patch is not None:
            self._order = order_of(self.loader.sampler, self.recorder.patch)
        self._batches.append(batch)
        self._drawn += 1
        self._samples += len(batch)
        if self._drawn == self._length:
            self.finish()
        elif self._samples >= _FLUSH_SAMPLES or time.monotonic() - self._flushed > _FLUSH_SECONDS:
            self.flush()

    def _write(self, header: dict[str, Any], payload: bytes = b"") -> None:
        self.recorder.write({**header, "loader": self.loader.number, "pass": self.number}, payload)


class _Follower(Iterator[Any]):
    """A sampler's iterator that records each item. It passes on the state that torchdata asks an iterator for."""

    def __init__(self, current: _Pass, items: Iterator[Any]) -> None:
        self._pass, self._items = current, items

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration:
            self._pass.ended()
            raise
        self._pass.record(item)
        return item

    def __getattr__(self, name: str) -> Any:
        if name in ("state_dict", "load_state_dict"):
            return getattr(self._items, name)
        raise AttributeError(name)


def _rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK") or 0)


def _ranks() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    return int(os.environ.get("WORLD_SIZE") or 1)
