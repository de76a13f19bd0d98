"""The datasets that have a name: how each is loaded, what it is, and how much of it there is.

To add a dataset, add an entry. The sizes are listed so that a cost can be estimated before anything is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from replenish.lab.data.cifar import cifar_paths, load_cifar
from replenish.lab.data.cifar_files import CIFAR10, CIFAR100, CIFAR100_COARSE, CifarFiles
from replenish.lab.data.dataset import Dataset
from replenish.lab.data.image_choice import held_out


@dataclass(frozen=True)
class KnownDataset:
    """A dataset that has a name: what it is, in a few words, and how much of it there is.

    `load` reads the whole of it, from a folder if one is given; `files` are those that it is in, if they are slow to
    decode; `subclasses`, where given, are the classes by which images per class are counted.
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
        """Return how many training images there are if each class keeps so many, or all."""
        return self.train_images if images_per_class is None else images_per_class * (self.subclasses or self.classes)


def load_digits() -> Dataset:
    """Return the 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, in a fixed split."""
    # Imported here, since scikit-learn takes a second to import and only the digits need it.
    from sklearn import datasets

    bunch = datasets.load_digits()
    # Grey levels from 0 to 16 become 0 to 255, to the nearest.
    images = ((bunch.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8)[..., np.newaxis]
    labels = bunch.target.astype(np.int64)
    test = held_out(labels, 10, 0, "digits")
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
