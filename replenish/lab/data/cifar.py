"""CIFAR-10 and CIFAR-100 from the official python files: a folder, a `.tar.gz` or a `.tar.xz`.

Archives are never unpacked: only the files with the exact names are read. The md5 of every file is checked before the
file is unpickled, and the unpickler accepts only the three names that numpy's arrays need.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import lzma
import os
import pickle
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array

SUFFIXES = (".tar.gz", ".tar.xz")
#: The largest official file has 155 MB. A few kilobytes of xz could hold a file that fills the memory.
MAX_FILE_BYTES = 1 << 28
ENVIRONMENT = "REPLENISH_DATA"


@dataclass(frozen=True)
class CifarFiles:
    """The files of an official archive, and its address.

    `train` and `test` are the names and md5s of files, in order; `meta` is the file of class names. `label_key` and
    `subclass_key` are the keys of the labels in a batch and, if images per class are counted by these, of finer labels.
    `names_key` is the key of the class names in `meta`.
    """

    name: str
    folder: str
    archive: str
    url: str
    archive_md5: str
    train: tuple[tuple[str, str], ...]
    test: tuple[tuple[str, str], ...]
    meta: tuple[str, str]
    label_key: bytes
    names_key: bytes
    subclass_key: bytes | None = None

    @property
    def md5s(self) -> dict[str, str]:
        """The md5 of every required file, by its name."""
        return dict((*self.train, *self.test, self.meta))


CIFAR10 = CifarFiles(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive="cifar-10-python",
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    archive_md5="c58f30108f718f92721af3b95e74349a",
    train=(
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    ),
    test=(("test_batch", "40351d587109b95175f43aff81a1287e"),),
    meta=("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    label_key=b"labels",
    names_key=b"label_names",
)
CIFAR100 = CifarFiles(
    name="cifar100",
    folder="cifar-100-python",
    archive="cifar-100-python",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    archive_md5="eb9058c3a382ffc7106e4002c42a8d85",
    train=(("train", "16019d7e3df5f24257cddd939b257f8d"),),
    test=(("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),),
    meta=("meta", "7973b15100ade9c7d40fb424638fde48"),
    label_key=b"fine_labels",
    names_key=b"fine_label_names",
)
# The same images with the labels of their 20 superclasses. Images per class are still counted by fine class. So
# `reduce` keeps the same images as for `cifar100`, and a comparison of the two changes only the labels.
CIFAR100_COARSE = dataclasses.replace(
    CIFAR100,
    name="cifar100-coarse",
    label_key=b"coarse_labels",
    names_key=b"coarse_label_names",
    subclass_key=b"fine_labels",
)
CIFARS = {files.name: files for files in (CIFAR10, CIFAR100, CIFAR100_COARSE)}


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder to search for data: `root`, else the one that REPLENISH_DATA names, else the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "replenish"
    return Path(os.environ.get(ENVIRONMENT) or cache if root is None else root).expanduser()


def find(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder or archive that holds `files`, the folder first, or None.

    `root` may be the folder or archive itself, or the folder that contains it.
    """
    base = data_root(root)
    if base.is_file():
        return base if base.name.startswith(files.archive) else None
    if (base / files.folder).is_dir():
        return base / files.folder
    if base.name == files.folder and base.is_dir():
        return base
    archives = (base / f"{files.archive}{suffix}" for suffix in SUFFIXES)
    return next((path for path in archives if path.is_file()), None)


def cifar_paths(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the archive that `load_cifar` reads, or the files of the folder."""
    path = _found(files, root)
    return [path] if path.is_file() else [file for name in files.md5s if (file := path / name).exists()]


def load_cifar(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read one of the CIFARs into memory, in the official order, from the folder that `data_root` returns."""
    contents = read_verified(files, _found(files, root))
    names = unpickle(contents.pop(files.meta[0]), files.meta[0])[files.names_key]
    # `pop` frees each file's content as soon as it is read.
    train, test = (
        [_batch(files, contents.pop(name), name) for name, _ in split] for split in (files.train, files.test)
    )
    train_images, train_labels, *subclasses = (np.concatenate(parts) for parts in zip(*train, strict=True))
    test_images, test_labels, *_ = (np.concatenate(parts) for parts in zip(*test, strict=True))
    return Dataset(
        train_images,
        train_labels,
        test_images,
        test_labels,
        tuple(name.decode() for name in names),
        files.name,
        train_subclasses=subclasses[0] if subclasses else None,
    )


def read_verified(files: CifarFiles, path: Path) -> dict[str, bytes]:
    """Return the contents of all files that `files` names, from a folder or archive, and check their md5s."""
    contents = {}
    for name, content in (_folder_files if path.is_dir() else _archive_files)(files, path):
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != files.md5s[name]:
            raise DataError(f"{path}: {name} is not the official file (its md5 differs)")
        contents[name] = content
    if missing := [name for name in files.md5s if name not in contents]:
        raise DataError(f"{path}: {missing[0]} is missing")
    return contents


def unpickle(content: bytes, name: str) -> Any:
    """Return the object in a pickle of Python 2, with strings as bytes.

    Raises:
        DataError: The pickle is damaged, or asks for anything except numpy's arrays.
    """
    try:
        return _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except Exception as error:  # damaged pickles raise nearly any exception
        raise DataError(f"{name} is not a readable pickle of arrays ({' '.join(str(error).split())})") from None


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in ("numpy.core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype"):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return super().find_class(module, name)


def _found(files: CifarFiles, root: str | os.PathLike[str] | None) -> Path:
    path = find(files, root)
    if path is None:
        raise FileNotFoundError(
            f"{files.name} is not in {data_root(root)}; download it with `replenish data get {files.name}`, or set "
            f"{ENVIRONMENT} to the folder where it is"
        )
    return path


def _folder_files(files: CifarFiles, path: Path) -> Iterator[tuple[str, bytes]]:
    for name in files.md5s:
        if (file := path / name).is_file():
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
                    raise DataError(f"{path}: {name} is not the official file (it is a link, or far too large)")
                yield name, content.read()
                if not names:
                    return
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, ValueError, OSError) as error:
        raise DataError(f"{path} is not a readable archive, or is cut short ({error})") from None


def _batch(files: CifarFiles, content: bytes, name: str) -> tuple[UInt8Array | Int64Array, ...]:
    """Return the images of a batch, their labels, and their finer labels if those are wanted."""
    batch = unpickle(content, name)
    # A row is three planes of 32 x 32; in a `Dataset` the channels are the last axis.
    images = np.ascontiguousarray(batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    keys = (files.label_key, files.subclass_key)
    return images, *(np.array(batch[key], dtype=np.int64) for key in keys if key is not None)
