"""CIFAR-10 and CIFAR-100 from the official python files: a folder, a `.tar.gz` or a `.tar.xz`.

Files of an archive are read by their exact names, and nothing is unpacked. The md5 of every file is checked before the
file is interpreted. The unpickler knows arrays of bytes and plain values, and calls nothing else.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import pickle
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from replenish.lab.data.cifar_files import ENVIRONMENT, CifarFiles, data_root, find
from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array

#: The largest official file has 155 MB.
MAX_FILE_BYTES = 1 << 28


def load_cifar(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read one of the CIFARs into memory, in the official order, from the folder that `data_root` returns."""
    contents = read_verified(files, _found(files, root))
    meta = read_plain_pickle(contents.pop(files.meta[0]), f"{files.name}: {files.meta[0]}")
    if not isinstance(meta, dict) or files.names_key not in meta:
        raise DataError(f"{files.name}: {files.meta[0]} has no entry {files.names_key.decode()!r}")
    names = meta[files.names_key]
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise DataError(f"{files.name}: {files.meta[0]} has no list of class names")
    read = []
    for split in (files.train, files.test):
        # Each content is freed once it is read: two copies of all would be large.
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
    read = _folder_files(files, path) if path.is_dir() else _archive_files(files, path)
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
        if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:  # reading a pipe would block
            raise DataError(f"{path}: {name} is not the official file (it is not a file, or far too large)")
        yield name, file.read_bytes()


def _archive_files(files: CifarFiles, path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive by name; the rest of the archive is skipped."""
    names = {f"{files.folder}/{name}": name for name in files.md5s}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                name = names.pop(member.name, None)
                if name is None:
                    continue
                content = archive.extractfile(member) if member.isreg() and member.size <= MAX_FILE_BYTES else None
                if content is None:
                    raise DataError(f"{path}: {name} is not the official file (it is not a file, or far too large)")
                yield name, content.read()
                if not names:
                    return
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError, OSError) as error:
        raise DataError(f"{path} is not a readable archive, or is cut short ({error})") from None


def read_plain_pickle(content: bytes, what: str) -> object:
    """Return a pickled dict, list, number, byte string or uint8 array; `what` names the file in messages.

    Strings of Python 2 are returned as bytes.

    Raises:
        DataError: The pickle is damaged, or names anything except numpy's arrays.
    """
    try:
        value = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except DataError as error:
        raise DataError(f"{what} {error}") from None
    except Exception as error:  # damaged pickles raise nearly any exception
        raise DataError(f"{what} is not a readable pickle ({type(error).__name__})") from None
    if isinstance(value, dict):
        return {key: item.value if isinstance(item, _Array) else item for key, item in value.items()}
    return value.value if isinstance(value, _Array) else value


class _Array:
    """An array of bytes that a pickle describes."""

    def __init__(self, *_: object) -> None:
        self.value: UInt8Array | None = None

    def __setstate__(self, state: tuple[int, tuple[int, ...], object, bool, bytes]) -> None:
        _, shape, _, by_columns, content = state
        self.value = np.frombuffer(content, np.uint8).reshape(shape, order="F" if by_columns else "C")


class _ByteType:
    """The type of such an array; a byte has no byte order, so its state is ignored."""

    def __init__(self, code: object, *_: object) -> None:
        if code not in ("u1", b"u1"):
            raise DataError(f"holds an array of type {code!r:.20}, not of bytes")

    def __setstate__(self, state: object) -> None:
        pass


class _Unpickler(pickle.Unpickler):
    """An unpickler that replaces numpy's three names and refuses all others."""

    _names: ClassVar = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): object,  # an argument of the name above
        ("numpy", "dtype"): _ByteType,
    }

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self._names:
            raise DataError(f"asks for {module}.{name}, which the data does not need")
        return self._names[module, name]


def _batch(files: CifarFiles, content: bytes, name: str) -> tuple[UInt8Array | Int64Array, ...]:
    """Return the images of a batch, their labels, and their finer labels if those are wanted."""
    value = read_plain_pickle(content, f"{files.name}: {name}")
    if not isinstance(value, dict):
        raise DataError(f"{files.name}: {name} has no batch")
    pixels = value.get(b"data")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise DataError(f"{files.name}: {name} has no rows of 3072 bytes")
    found = [value.get(key) for key in (files.label_key, files.subclass_key) if key is not None]
    for labels in found:
        if not isinstance(labels, list) or not all(type(label) is int for label in labels):
            raise DataError(f"{files.name}: {name} has no list of labels")
    # A row is three planes of 32 x 32; here the channel comes last.
    images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, *(np.array(labels, dtype=np.int64) for labels in found)
