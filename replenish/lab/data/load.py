"""`load`: a dataset by its name, or from a folder of images or an `.npz`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from replenish import checks
from replenish.lab.data.arrays import load_npz
from replenish.lab.data.choice import held_out
from replenish.lab.data.cifar import CIFARS, load_cifar
from replenish.lab.data.dataset import DataError, Dataset
from replenish.lab.data.folder import load_folder
from replenish.lab.data.reduction import reduce, size_pair

NAMES = ("digits", *CIFARS)


def load(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    images_per_class: int | None = None,
    classes: int | Sequence[int | str] | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
) -> Dataset:
    """Load a dataset into memory, cut down if asked.

    Args:
        name: `"digits"` (inside scikit-learn, needs no download), `"cifar10"`, `"cifar100"`, the path of a
            folder of images (see `load_folder`) or of an `.npz` (see `load_npz`).
        root: For the CIFARs, where the official files are: by default the folder that the variable
            REPLENISH_DATA names, or the user's cache. For a path, the folder from which it counts.
        images_per_class: As in `reduce`: training images that each class keeps.
        classes: As in `reduce`: how many classes to keep, or which.
        image_size: As in `reduce`: new height and width. Needed for a folder of images of several sizes.
        seed: The seed of the choice of images, and of the split of data that has none of its own. The split
            of digits is fixed.

    Raises:
        DataError: If the data is damaged, hostile or contradictory.
        FileNotFoundError: If there is nothing of that name.

    Example:
        >>> from replenish.lab.data import load
        >>> load("digits", images_per_class=10).train_images.shape
        (100, 8, 8, 1)
    """
    seed = checks.seed(seed)
    dataset = _whole(name, root, None if image_size is None else size_pair(image_size), seed)
    return reduce(dataset, images_per_class=images_per_class, classes=classes, image_size=image_size, seed=seed)


def _whole(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None,
    image_size: tuple[int, int] | None,
    seed: int,
) -> Dataset:
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(f"name should be a str or a path, but got {name!r} of type {type(name).__name__}")
    if name == "digits":
        return _digits()
    if isinstance(name, str) and name in CIFARS:
        return load_cifar(CIFARS[name], root)
    path = Path(root or ".").expanduser() / Path(name).expanduser()
    if name != "" and path.is_dir():
        return load_folder(path.resolve(), image_size, seed)
    if path.is_file():
        if path.suffix != ".npz":
            raise DataError(f"{path} is neither a folder of images nor an .npz file")
        return load_npz(path, seed)
    text = os.fspath(name)
    if Path(text).name != text or Path(text).suffix:
        raise FileNotFoundError(f"{path} does not exist")
    near = difflib.get_close_matches(text.lower(), NAMES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(NAMES)}, folders and .npz files"
    raise ValueError(f"there is no dataset or path named {text!r}; {hint}")


def _digits() -> Dataset:
    """Return the 1797 handwritten digits of 8 x 8 pixels that come with scikit-learn, in a fixed split."""
    # Imported here: scikit-learn takes a second to import, and only these digits need it.
    from sklearn.datasets import load_digits

    bunch = load_digits()
    # Grey levels from 0 to 16 become 0 to 255, to the nearest.
    images = ((bunch.images.astype(np.int64) * 255 + 8) // 16).astype(np.uint8)[..., np.newaxis]
    labels = bunch.target.astype(np.int64)
    test = held_out(labels, 10, 0, "digits")
    names = tuple(str(digit) for digit in range(10))
    return Dataset(images[~test], labels[~test], images[test], labels[test], names, "digits")
