"""Decoded data kept on the disk, so that the runs of an experiment do not each decode it again.

What is large is not read into memory but mapped: an uncompressed `.npz` has its arrays as they are, and memory holds
what is being used of them. An entry is named by where its data came from (paths, sizes and times of files), by how it
was cut down, and by the release: what has changed has another name. Entries can be deleted at any time, and the oldest
are when there are many.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from replenish import __version__
from replenish.lab.data import image_stack
from replenish.lab.data.dataset import Dataset, UInt8Array
from replenish.lab.data.image_stack import is_large, scratch_folder

#: Of all entries; one is written only if it leaves as much of the disk free as it takes.
MAX_BYTES = 20 << 30
# A file can change twice in the same tick of its file system's clock: one that is so new may do so.
SECONDS_UNTIL_STILL = 2.0
REQUIRED = ("train_images", "train_labels", "test_images", "test_labels")
OPTIONAL = ("held_out_images", "held_out_labels", "train_subclasses", "train_files")
# A part of every entry's name; to be raised when entries get another content.
LAYOUT = 2


def decoded_once(files: Iterable[Path], cut: Mapping[str, Any], decode: Callable[[], Dataset]) -> Dataset:
    """Return what `decode` returns, from the disk if these files have been cut down so before."""
    key = _key(files, cut)
    if key is None:
        return decode()
    path = scratch_folder() / f"{key}.npz"
    if (found := _read(path)) is not None:
        return found
    dataset = decode()
    try:
        _write(path, dataset)
    except OSError:  # a failing cache must not stop a run
        with contextlib.suppress(OSError):
            _unfinished(path).unlink()
    # A large dataset was decoded into a separate file, which is no longer needed.
    return (_read(path) if is_large(dataset.train_images) else None) or dataset


def _key(files: Iterable[Path], cut: Mapping[str, Any]) -> str | None:
    """Return the name of an entry, or None for what cannot have one."""
    try:
        digest = hashlib.sha256(json.dumps([__version__, LAYOUT, cut], sort_keys=True).encode())
    except TypeError:  # an argument that is no plain value: numpy's number, or one that will be refused
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
    """Return an entry; None if there is none, or a damaged one."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            names = [name for name in (*REQUIRED, *OPTIONAL) if name in stored.files]
            large = path.stat().st_size > image_stack.IN_MEMORY
            mapped = _mapped(path, stored.zip) if large else {}
            arrays: dict[str, Any] = {name: mapped[name] if name in mapped else stored[name] for name in names}
            about = json.loads(str(stored["about"]))
        dataset = Dataset(**arrays, class_names=tuple(about["class_names"]), name=about["name"])
        if dataset.fingerprint != about["fingerprint"]:
            return None
        os.utime(path)  # used just now
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return dataset


def _mapped(path: Path, archive: zipfile.ZipFile) -> dict[str, UInt8Array]:
    """Return the images of an entry as parts of its file."""
    found: dict[str, UInt8Array] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if not name.endswith("_images"):
            continue
        with archive.open(member) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError(f"{path} has an array of another kind than is written here")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            start = member.file_size - int(np.prod(shape)) * dtype.itemsize
        with path.open("rb") as raw:  # the member's own header may be longer than the directory's copy of it
            raw.seek(member.header_offset + 26)
            lengths = int.from_bytes(raw.read(2), "little") + int.from_bytes(raw.read(2), "little")
        found[name] = np.memmap(path, dtype, "r", member.header_offset + 30 + lengths + start, shape)
    return found


def _write(path: Path, dataset: Dataset) -> None:
    arrays = {name: getattr(dataset, name) for name in (*REQUIRED, *OPTIONAL)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES // 2:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _make_room(path.parent, size)
    if shutil.disk_usage(path.parent).free < 2 * size:
        return
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
