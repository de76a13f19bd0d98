"""A cache of decoded data on the disk, so that not every run of an experiment decodes the data again.

An entry is a folder of `.npy` files; large arrays are mapped instead of read into memory. Its name is a hash of the
data's files (their paths, sizes and times), of how they were reduced, and of the release, so changed data have another
entry. Entries can be deleted at any time. If there are too many, the least recently used ones are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replenish import __version__
from replenish.lab.data import images
from replenish.lab.data.dataset import ARRAYS, Dataset

#: The size of all entries together. An entry is written only if the disk has room for it twice.
MAX_BYTES = 20 << 30
# A newer file is not cached: with a coarse clock, it could change again without a change of its time.
SECONDS_UNTIL_STILL = 2.0
# Raise this when the content of entries changes; it is part of every entry's name.
LAYOUT = 3


def decoded_once(files: Iterable[Path], cut: Mapping[str, Any], decode: Callable[[], Dataset]) -> Dataset:
    """Return what `decode` returns, from the cache if it has an entry for these files and this reduction."""
    key = _key(files, cut)
    if key is None:
        return decode()
    path = images.scratch_folder() / key
    if (found := _read(path)) is not None:
        return found
    dataset = decode()
    with contextlib.suppress(OSError):  # a failing cache must not stop a run
        _write(path, dataset)
    # `decode` maps a large dataset to a temporary file. Reading the entry instead frees that file.
    return (_read(path) if images.is_large(dataset.train_images) else None) or dataset


def _key(files: Iterable[Path], cut: Mapping[str, Any]) -> str | None:
    """Return the name of an entry, or None for data that cannot have one."""
    try:
        digest = hashlib.sha256(json.dumps([__version__, LAYOUT, cut], sort_keys=True).encode())
    except TypeError:  # an argument is a number of numpy's, or of a type that `decode` will refuse
        return None
    for file in files:
        status = file.stat()
        if time.time() - status.st_mtime < SECONDS_UNTIL_STILL:
            return None
        digest.update(
            os.fsencode(file.absolute()) + f"\n{status.st_size} {status.st_mtime_ns} {status.st_ino}\n".encode()
        )
    return digest.hexdigest()[:32]


def _read(path: Path) -> Dataset | None:
    """Return an entry, or None if it does not exist or is damaged."""
    try:
        about = json.loads((path / "about.json").read_text())
        arrays: dict[str, Any] = {}
        for file in path.glob("*.npy"):
            large = file.stat().st_size > images.IN_MEMORY
            arrays[file.stem] = np.load(file, mmap_mode="r" if large else None, allow_pickle=False)
        dataset = Dataset(**arrays, class_names=tuple(about["class_names"]), name=about["name"])
        if dataset.fingerprint != about["fingerprint"]:
            return None
        os.utime(path)  # for `_make_room`: the time of its last use
    except (OSError, ValueError, TypeError, KeyError, EOFError):
        return None
    return dataset


def _write(path: Path, dataset: Dataset) -> None:
    arrays = {name: array for name in ARRAYS if (array := getattr(dataset, name)) is not None}
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES // 2:
        return
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.mkdir(parents=True, exist_ok=True)
    try:
        _make_room(path.parent, size)
        if shutil.disk_usage(path.parent).free < 2 * size:
            return
        for name, array in arrays.items():
            np.save(unfinished / name, array)
        about = {"class_names": dataset.class_names, "name": dataset.name, "fingerprint": dataset.fingerprint}
        (unfinished / "about.json").write_text(json.dumps(about))
        shutil.rmtree(path, ignore_errors=True)  # there may be a damaged entry
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _make_room(folder: Path, size: int) -> None:
    """Remove the least recently used entries, and files that killed processes and earlier releases have left."""
    entries = sorted((entry.stat().st_mtime, entry) for entry in folder.iterdir())
    sizes = {
        entry: sum(file.stat().st_size for file in (entry, *entry.glob("*")) if file.is_file()) for _, entry in entries
    }
    total = sum(sizes.values())
    for used, entry in entries:
        unfinished = entry.suffix != "" and time.time() - used > 3600
        if total + size > MAX_BYTES or unfinished:
            total -= sizes[entry]
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
