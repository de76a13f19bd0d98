"""CIFAR-10 and CIFAR-100 from the official python files: a folder, a `.tar.gz` or a `.tar.xz`.

The md5 of every file is checked before a byte of it is interpreted, archives are read in passing without
being unpacked, and the pickles inside by an unpickler that can call nothing (`unpickle.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from replenish.lab.data.archive import MAX_MEMBER_BYTES, read_files
from replenish.lab.data.cifar_files import ENVIRONMENT, CifarFiles, data_root, find
from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array
from replenish.lab.data.unpickle import read_plain_pickle


def load_cifar(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read one of the CIFARs into memory, in the official order, from where `data_root` says."""
    contents = read_verified(files, _found(files, root))
    meta = read_plain_pickle(contents.pop(files.meta[0]), f"{files.name}: {files.meta[0]}")
    if not isinstance(meta, dict) or files.names_key not in meta:
        raise DataError(f"{files.name}: {files.meta[0]} has no entry {files.names_key.decode()!r}")
    names = meta[files.names_key]
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise DataError(f"{files.name}: {files.meta[0]} holds no list of class names")
    read = []
    for split in (files.train, files.test):
        # Contents are let go as they are read: the two copies together would be large.
        batches = [_batch(files, contents.pop(name), name) for name, _ in split]
        read.append([np.concatenate(parts) for parts in zip(*batches, strict=True)])
    (train_images, train_labels, *subclasses), (test_images, test_labels, *_) = read
    class_names = tuple(name.decode("ascii", "replace") for name in names)
    splits = (train_images, train_labels, test_images, test_labels)
    return Dataset(*splits, class_names, files.name, train_subclasses=subclasses[0] if subclasses else None)


def cifar_paths(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the archive that `load_cifar` reads, or the files of the folder."""
    path = _found(files, root)
    return [path] if path.is_file() else [file for name in files.md5s if (file := path / name).exists()]


def _found(files: CifarFiles, root: str | os.PathLike[str] | None) -> Path:
    path = find(files, root)
    if path is None:
        raise FileNotFoundError(
            f"{files.name} is not in {data_root(root)}; download it with `replenish data get {files.name}`, or set "
            f"{ENVIRONMENT} to the folder where it is"
        )
    return path


def read_verified(files: CifarFiles, path: Path) -> dict[str, bytes]:
    """Return the contents of all files that `files` names, their md5s checked, from a folder or archive."""
    contents = {}
    read = _folder_files(files, path) if path.is_dir() else read_files(path, files.folder, files.md5s)
    for name, content in read:
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != files.md5s[name]:
            raise DataError(f"{path}: {name} is not the official file (its md5 differs)")
        contents[name] = content
    if missing := [name for name in files.md5s if name not in contents]:
        raise DataError(f"{path}: {missing[0]} is missing")
    return contents


def _folder_files(files: CifarFiles, path: Path) -> Iterator[tuple[str, bytes]]:
    for name in files.md5s:
        file = path / name
        if not file.exists():
            raise DataError(f"{path}: {name} is missing")
        # A pipe of that name would be waited for; a file of any size would be read.
        if not file.is_file() or file.stat().st_size > MAX_MEMBER_BYTES:
            raise DataError(f"{path}: {name} is not the official file (it is no file, or far too large)")
        yield name, file.read_bytes()


def _batch(files: CifarFiles, content: bytes, name: str) -> tuple[UInt8Array | Int64Array, ...]:
    """Return the images of a batch, their labels, and their finer labels if those are wanted."""
    value = read_plain_pickle(content, f"{files.name}: {name}")
    if not isinstance(value, dict):
        raise DataError(f"{files.name}: {name} holds no batch")
    pixels = value.get(b"data")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise DataError(f"{files.name}: {name} holds no rows of 3072 bytes")
    found = [value.get(key) for key in (files.label_key, files.subclass_key) if key is not None]
    for labels in found:
        if not isinstance(labels, list) or not all(type(label) is int for label in labels):
            raise DataError(f"{files.name}: {name} holds no list of labels")
    # A row is three planes of 32 x 32; here the channel comes last.
    images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, *(np.array(labels, dtype=np.int64) for labels in found)
