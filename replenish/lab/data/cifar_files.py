"""What the official CIFAR archives hold, where they come from, and where they are looked for here."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".tar.gz", ".tar.xz")
ENVIRONMENT = "REPLENISH_DATA"


@dataclass(frozen=True)
class CifarFiles:
    """What an official archive holds, and where it comes from.

    A split is its files in order, each a name and an md5; `meta` is the file of class names. The keys are those of the
    labels in a batch, of the names in that file, and of finer labels in a batch, if images are to be counted by these.
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
        """File name to md5, of every required file."""
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
# The same images with the labels of their 20 superclasses. Images per class are still counted by fine class, so the
# images are those of `cifar100`, and a comparison of the two changes only the labels.
CIFAR100_COARSE = dataclasses.replace(
    CIFAR100,
    name="cifar100-coarse",
    label_key=b"coarse_labels",
    names_key=b"coarse_label_names",
    subclass_key=b"fine_labels",
)
CIFARS = {files.name: files for files in (CIFAR10, CIFAR100, CIFAR100_COARSE)}


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
