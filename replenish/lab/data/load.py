"""`load`: loads a dataset by its name, or from a folder of images or an `.npz`. `DATASETS` lists the names.

To add a dataset, add an entry to `DATASETS`. It has the dataset's sizes, so that costs can be estimated before anything
is downloaded.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from replenish import checks
from replenish.lab.data.cache import decoded_once
from replenish.lab.data.cifar import CIFAR10, CIFAR100, CIFAR100_COARSE, CifarFiles, cifar_paths, load_cifar
from replenish.lab.data.dataset import DataError, Dataset
from replenish.lab.data.image_folder import load_folder
from replenish.lab.data.npz_file import load_npz
from replenish.lab.data.smaller_dataset import held_out as chosen_for_testing
from replenish.lab.data.smaller_dataset import reduce, size_pair


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that has a name: its description, its loader and its sizes.

    `load` reads the dataset, from a folder if one is given. `files` returns its files if they are slow to decode, so
    that they are cached. `subclasses` is the number of finer classes, if images per class are counted by these.
    """

    description: str
    load: Callable[[str | os.PathLike[str] | None], Dataset]
    classes: int
    train_images: int
    test_images: int
    image_size: int
    channels: int
    files: Callable[[str | os.PathLike[str] | None], list[Path]] | None = None
    subclasses: int | None = None

    def kept_images(self, images_per_class: int | None) -> int:
        """Return the number of training images if each class keeps `images_per_class`, or all of them for None."""
        return self.train_images if images_per_class is None else images_per_class * (self.subclasses or self.classes)


def load_digits() -> Dataset:
    """Return the 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, in a fixed split."""
    # Imported here, since it takes a second and only the digits need it.
    from sklearn import datasets

    bunch = datasets.load_digits()
    # Grey levels from 0 to 16 become 0 to 255, to the nearest.
    images = ((bunch.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8)[..., np.newaxis]
    labels = bunch.target.astype(np.int64)
    test = chosen_for_testing(labels, 10, 0, "digits")
    names = tuple(str(digit) for digit in range(10))
    return Dataset(images[~test], labels[~test], images[test], labels[test], names, "digits")


def _cifar(files: CifarFiles, description: str, classes: int, subclasses: int | None = None) -> KnownDataset:
    load, paths = partial(load_cifar, files), partial(cifar_paths, files)
    return KnownDataset(description, load, classes, 50_000, 10_000, 32, 3, paths, subclasses)


DATASETS = {
    "digits": KnownDataset(
        "handwritten digits inside scikit-learn, nothing to download", lambda root: load_digits(), 10, 1438, 359, 8, 1
    ),
    "cifar10": _cifar(CIFAR10, "CIFAR-10", 10),
    "cifar100": _cifar(CIFAR100, "CIFAR-100", 100),
    "cifar100-coarse": _cifar(CIFAR100_COARSE, "CIFAR-100 with the labels of its 20 superclasses", 20, subclasses=100),
}


def load(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    images_per_class: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
    held_out: bool = False,
) -> Dataset:
    """Load a dataset into memory, and reduce it if requested.

    Args:
        name: One of `replenish.lab.data.DATASETS`: `"digits"` (needs no download), `"cifar10"`, `"cifar100"`,
            `"cifar100-coarse"` (the same images with 20 coarse labels); or the path of a folder of images (see
            `load_folder`) or of an `.npz` (see `load_npz`).
        root: For the CIFARs, the folder of the official files: by default the one that the variable REPLENISH_DATA
            names, or the user's cache. For a path, the folder to which it is relative.
        images_per_class: As in `reduce`: training images that each class keeps.
        image_size: As in `reduce`: new height and width. Needed for a folder of images of several sizes.
        seed: The seed of the choice of images, and of the split of data without a test split. The split of the digits
            is fixed.
        held_out: As in `reduce`: whether to return also the training images that are not kept.

    Raises:
        DataError: The data are damaged, hostile or contradictory.
        FileNotFoundError: There is no such file or folder.

    Example:
        >>> from replenish.lab.data import load
        >>> load("digits", images_per_class=10).train_images.shape
        (100, 8, 8, 1)
    """
    seed = checks.seed(seed)
    size = None if image_size is None else size_pair(image_size)
    source = find_source(name, root)
    cut: dict[str, Any] = {
        "images_per_class": images_per_class,
        "image_size": size,
        "seed": seed,
        "held_out": held_out,
    }

    def read() -> Dataset:
        return reduce(source.load(size, seed), **cut)

    return read() if source.files is None else decoded_once(source.files(), {"name": source.name, **cut}, read)


@dataclass(frozen=True)
class Source:
    """Where data come from: a function that reads them, and their files if these are slow to decode."""

    name: str
    load: Callable[[tuple[int, int] | None, int], Dataset]
    files: Callable[[], list[Path]] | None = None


def find_source(name: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> Source:
    """Return the source of the data with a name or path, without reading them; the arguments are as for `load`."""
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"name should be a str or a path, but got {name!r} of type {type(name).__name__}")
    if isinstance(name, str) and name in DATASETS:
        known = DATASETS[name]
        return Source(name, lambda size, seed: known.load(root), known.files and partial(known.files, root))
    path = Path(root or ".").expanduser() / Path(name).expanduser()
    if name != "" and path.is_dir():
        folder = path.resolve()
        return Source(str(folder), partial(load_folder, folder), lambda: sorted(folder.rglob("*")))
    if path.is_file():
        if path.suffix != ".npz":
            raise DataError(f"{path} is neither a folder of images nor an .npz file")
        return Source(str(path), lambda size, seed: load_npz(path, seed))
    text = os.fspath(name)
    if Path(text).name != text or Path(text).suffix:
        raise FileNotFoundError(f"{path} does not exist")
    near = difflib.get_close_matches(text.lower(), DATASETS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(DATASETS)}, folders and .npz files"
    raise ValueError(f"there is no dataset or path named {text!r}; {hint}")
