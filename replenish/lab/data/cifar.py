"""CIFAR-10 and CIFAR-100 from the official python files: a folder, a `.tar.gz` or a `.tar.xz`.

The md5 of every file is checked before a byte of it is interpreted, archives are read in passing without
being unpacked, and the pickles inside by an unpickler that can call nothing (`unpickle.py`).
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array
from replenish.lab.data.unpickle import read_plain_pickle

SUFFIXES = (".tar.gz", ".tar.xz")
ENVIRONMENT = "REPLENISH_DATA"

# The largest official file has 155 MB; a member that claims more than this is no part of the data.
MAX_MEMBER_BYTES = 1 << 28
UNREADABLE = (tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


@dataclass(frozen=True)
class CifarFiles:
    """What an official archive holds, and where it comes from.

    Args:
        name: The name for `load`.
        folder: The folder inside the archive.
        archive: The archive's name without its suffix.
        url: The archive's home.
        archive_md5: md5 of the official `.tar.gz`.
        train: File names and md5s of the training split, in order.
        test: The same for the test split.
        meta: The same for the file of class names.
        label_key: The key of the labels in a batch.
        names_key: The key of the class names in the meta file.
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

    @property
    def md5s(self) -> dict[str, str]:
        """File name to md5, for every file that is needed."""
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
CIFARS = {files.name: files for files in (CIFAR10, CIFAR100)}


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return where data is looked for: `root`, else the folder that REPLENISH_DATA names, else a cache."""
    if root is not None:
        return Path(root).expanduser()
    if named := os.environ.get(ENVIRONMENT):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "replenish"


def find(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder or archive that holds `files`, the folder first, or None.

    `root` may be the folder that holds it or the folder or archive itself.
    """
    base = data_root(root)
    if base.name == files.folder and base.is_dir() and not (base / files.folder).is_dir():
        return base
    if base.is_file():
        return base if base.name.startswith(files.archive) else None
    if (base / files.folder).is_dir():
        return base / files.folder
    archives = (base / f"{files.archive}{suffix}" for suffix in SUFFIXES)
    return next((path for path in archives if path.is_file()), None)


def load_cifar(files: CifarFiles, root: str | os.PathLike[str] | None = None) -> Dataset:
    """Read one of the CIFARs into memory, in the official order.

    Args:
        files: `CIFAR10` or `CIFAR100`.
        root: Where to look; see `data_root`.
    """
    path = find(files, root)
    if path is None:
        raise FileNotFoundError(
            f"{files.name} is not in {data_root(root)}: give root=, set {ENVIRONMENT}, "
            f"or run `replenish data get {files.name}`"
        )
    contents = read_verified(files, path)
    names = _entry(files, contents.pop(files.meta[0]), files.meta[0], files.names_key)
    if not isinstance(names, list) or not all(isinstance(name, bytes) for name in names):
        raise DataError(f"{files.name}: {files.meta[0]} holds no list of class names")
    splits = []
    for split in (files.train, files.test):
        # Contents are let go as they are read: the two copies together would be large.
        batches = [_batch(files, contents.pop(name), name) for name, _ in split]
        images, labels = zip(*batches, strict=True)
        splits.append((np.concatenate(images), np.concatenate(labels)))
    (train_images, train_labels), (test_images, test_labels) = splits
    return Dataset(
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        class_names=tuple(name.decode("ascii", "replace") for name in names),
        name=files.name,
    )


def read_verified(files: CifarFiles, path: Path) -> dict[str, bytes]:
    """Return the contents of all files that `files` names, their md5s checked, from a folder or archive."""
    contents = {}
    for name, content in _folder_files(files, path) if path.is_dir() else _archive_files(files, path):
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != files.md5s[name]:
            raise DataError(f"{path}: {name} is not the official file (its md5 differs)")
        contents[name] = content
    if missing := [name for name in files.md5s if name not in contents]:
        raise DataError(f"{path}: {missing[0]} is missing")
    return contents


@contextmanager
def open_archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar archive; whatever goes wrong in reading it becomes one sentence."""
    try:
        with tarfile.open(path, "r:*") as archive:
            yield archive
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # tarfile lists every format that it tried
        raise DataError(f"{path} is no readable archive, or is cut short ({reason})") from None


def check_member(member: tarfile.TarInfo, files: CifarFiles, path: Path) -> None:
    """Refuse a member that is anything but a file or folder of ordinary size inside the official folder."""
    parts = PurePosixPath(member.name).parts
    inside = parts[:1] == (files.folder,) and ".." not in parts and "\\" not in member.name
    if not inside:
        raise DataError(f"{path}: member {member.name!r} is outside of {files.folder}")
    if not (member.isfile() or member.isdir()):
        raise DataError(f"{path}: member {member.name!r} is neither a file nor a folder")
    if member.size > MAX_MEMBER_BYTES:
        raise DataError(f"{path}: member {member.name!r} claims {member.size} bytes")


def _archive_files(files: CifarFiles, path: Path) -> Iterator[tuple[str, bytes]]:
    wanted = {f"{files.folder}/{name}": name for name in files.md5s}
    with open_archive(path) as archive:
        for member in archive:
            check_member(member, files, path)
            name = wanted.pop(str(PurePosixPath(member.name)), None)
            if name is not None and (stream := archive.extractfile(member)) is not None:
                yield name, stream.read()
            if not wanted:
                return


def _folder_files(files: CifarFiles, path: Path) -> Iterator[tuple[str, bytes]]:
    for name in files.md5s:
        try:
            yield name, (path / name).read_bytes()
        except FileNotFoundError:
            raise DataError(f"{path}: {name} is missing") from None


def _entry(files: CifarFiles, content: bytes, name: str, key: bytes) -> object:
    value = read_plain_pickle(content, f"{files.name}: {name}")
    if not isinstance(value, dict) or key not in value:
        raise DataError(f"{files.name}: {name} has no entry {key.decode()!r}")
    return value[key]


def _batch(files: CifarFiles, content: bytes, name: str) -> tuple[UInt8Array, Int64Array]:
    value = read_plain_pickle(content, f"{files.name}: {name}")
    if not isinstance(value, dict):
        raise DataError(f"{files.name}: {name} holds no batch")
    pixels, labels = value.get(b"data"), value.get(files.label_key)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise DataError(f"{files.name}: {name} holds no rows of 3072 bytes")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise DataError(f"{files.name}: {name} holds no list of labels")
    # A row is three planes of 32 x 32; here the channel comes last.
    images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, np.array(labels, dtype=np.int64)
