"""Decoded data kept on the disk, so that the runs of an experiment do not each decode it again.

An entry is named by where its data came from (paths, sizes and times of files), by how it was cut down, and by the
release: what has changed has another name. Entries can be deleted at any time, and the oldest are when there are many.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replenish import __version__
from replenish.lab.data.dataset import Dataset

MAX_BYTES = 2 << 30
# A file can change twice in the same tick of its file system's clock: one that is so new may do so.
SECONDS_UNTIL_STILL = 2.0
REQUIRED = ("train_images", "train_labels", "test_images", "test_labels")
OPTIONAL = ("held_out_images", "held_out_labels", "train_subclasses", "train_files")
# A part of every entry's name; to be raised when entries get another content.
LAYOUT = 2


def decoded_once(files: Iterable[Path], cut: Mapping[str, Any], decode: Callable[[], Dataset]) -> Dataset:
    """Return what `decode` returns, from the disk if it has been decoded before.

    Args:
        files: All files that the data come from.
        cut: Plain values that say how they are cut down.
        decode: Reads and cuts them.
    """
    key = _key(files, cut)
    if key is None:
        return decode()
    path = _folder() / f"{key}.npz"
    try:
        found = _read(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):  # none, or a damaged one
        found = None
    if found is not None:
        return found
    dataset = decode()
    try:
        _write(path, dataset)
    except OSError:  # a cache is not worth a run
        with contextlib.suppress(OSError):
            _unfinished(path).unlink()
    return dataset


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "replenish" / "decoded"


def _key(files: Iterable[Path], cut: Mapping[str, Any]) -> str | None:
    """Return the name of an entry, or None for what cannot have one."""
    try:
        digest = hashlib.sha256(json.dumps([__version__, LAYOUT, cut], sort_keys=True).encode())
    except TypeError:  # an argument that is no plain value: numpy's number, or one that will be refused
        return None
    for file in files:
        told = file.stat()
        if time.time() - told.st_mtime < SECONDS_UNTIL_STILL:
            return None
        digest.update(os.fsencode(file.absolute()) + f"\n{told.st_size} {told.st_mtime_ns} {told.st_ino}\n".encode())
    return digest.hexdigest()[:32]


def _read(path: Path) -> Dataset | None:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in (*REQUIRED, *OPTIONAL) if name in stored.files}
        about = json.loads(str(stored["about"]))
    dataset = Dataset(**arrays, class_names=tuple(about["class_names"]), name=about["name"])
    os.utime(path)  # used just now
    return dataset if dataset.fingerprint == about["fingerprint"] else None


def _write(path: Path, dataset: Dataset) -> None:
    arrays = {name: getattr(dataset, name) for name in (*REQUIRED, *OPTIONAL)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES // 2:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _make_room(path.parent, size)
    about = {"class_names": dataset.class_names, "name": dataset.name, "fingerprint": dataset.fingerprint}
    with _unfinished(path).open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)
    os.replace(_unfinished(path), path)


def _unfinished(path: Path) -> Path:
    return path.with_suffix(f".{os.getpid()}")


def _make_room(folder: Path, size: int) -> None:
    """Remove the entries that were not used for longest, and what killed processes have left."""
    entries = sorted((entry.stat().st_mtime, entry) for entry in folder.iterdir())
    total = sum(entry.stat().st_size for _, entry in entries)
    for used, entry in entries:
        half_written = entry.suffix != ".npz" and time.time() - used > 3600
        if total + size > MAX_BYTES or half_written:
            total -= entry.stat().st_size
            entry.unlink(missing_ok=True)
