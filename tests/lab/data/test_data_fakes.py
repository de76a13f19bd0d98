"""Small copies of the official CIFAR archives, valid and invalid, and a test of the valid ones."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from replenish.lab.data.cifar import CIFAR10, CIFAR100, CifarFiles, load_cifar

CLASSES = 4
# The coarse class of each fine class.
COARSE = (1, 0, 1, 0)


def python2_pickle(value: object) -> bytes:
    """Pickle like the CIFAR files: protocol 2, byte strings, arrays by numpy's old module name."""
    if isinstance(value, dict):
        items = b"".join(python2_pickle(key) + python2_pickle(item) for key, item in value.items())
        return b"}(" + items + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(python2_pickle, value)) + b"e"
    if isinstance(value, bytes):
        return b"T" + struct.pack("<i", len(value)) + value
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    assert isinstance(value, np.ndarray)
    rows, columns = map(python2_pickle, value.shape)
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01(" + rows + columns + b"t" + dtype + b"\x89" + python2_pickle(value.tobytes()) + b"t"
    return made + state + b"b"


def whole_pickle(value: object) -> bytes:
    return b"\x80\x02" + python2_pickle(value) + b"."


def fake_contents(files: CifarFiles, per_class: int = 3) -> dict[str, bytes]:
    """Return the contents by file name, in the official format, with few classes and images."""
    rng = np.random.default_rng(0)
    contents = {}
    for name, _ in (*files.train, *files.test):
        labels = [label for _ in range(per_class) for label in range(CLASSES)]
        pixels = rng.integers(0, 256, (len(labels), 3072), dtype=np.uint8)
        batch = {b"data": pixels, files.label_key: labels, b"batch_label": b"fake"}
        contents[name] = whole_pickle(batch | {b"coarse_labels": [COARSE[label] for label in labels]})
    names = [f"class {label}".encode() for label in range(CLASSES)]
    coarse_names = [b"coarse 0", b"coarse 1"]
    contents[files.meta[0]] = whole_pickle({files.names_key: names, b"coarse_label_names": coarse_names})
    return contents


def fake_files(files: CifarFiles, contents: dict[str, bytes]) -> CifarFiles:
    """Return `files` with the md5s of `contents`."""

    def md5(name: str) -> tuple[str, str]:
        return name, hashlib.md5(contents[name]).hexdigest()

    return replace(
        files,
        train=tuple(md5(name) for name, _ in files.train),
        test=tuple(md5(name) for name, _ in files.test),
        meta=md5(files.meta[0]),
    )


def write_folder(root: Path, files: CifarFiles, contents: dict[str, bytes]) -> Path:
    folder = root / files.folder
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(
    path: Path, files: CifarFiles, contents: dict[str, bytes], extra: tuple[tarfile.TarInfo, ...] = ()
) -> Path:
    """Write an archive with the members `extra` before the rest."""
    compression = path.name.rpartition(".")[2]
    with tarfile.open(path, f"w:{compression}") as archive:  # type: ignore[call-overload]
        for member in extra:
            archive.addfile(member, io.BytesIO(b"x" * member.size) if member.size else None)
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{files.folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def hostile_members() -> dict[str, tarfile.TarInfo]:
    """Return members that no archive should have, by kind."""
    members = {
        "parent": tarfile.TarInfo("cifar-100-python/../../outside"),
        "absolute": tarfile.TarInfo("/tmp/replenish-outside"),
        "symlink": tarfile.TarInfo("cifar-100-python/train"),
        "hard link": tarfile.TarInfo("cifar-100-python/train"),
        "fifo": tarfile.TarInfo("cifar-100-python/fifo"),
    }
    members["symlink"].type, members["symlink"].linkname = tarfile.SYMTYPE, "/etc/passwd"
    members["hard link"].type, members["hard link"].linkname = tarfile.LNKTYPE, "/etc/passwd"
    members["fifo"].type = tarfile.FIFOTYPE
    for name in ("parent", "absolute"):
        members[name].size = 5
    return members


def test_both_cifars_load(tmp_path: Path):
    for files, train in ((CIFAR10, 60), (CIFAR100, 12)):
        contents = fake_contents(files)
        write_folder(tmp_path, files, contents)
        dataset = load_cifar(fake_files(files, contents), tmp_path)
        assert dataset.train_images.shape == (train, 32, 32, 3)
        assert dataset.class_names == ("class 0", "class 1", "class 2", "class 3")
