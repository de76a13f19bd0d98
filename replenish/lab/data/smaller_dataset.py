"""Smaller versions of a dataset, and the choice of images to keep or hold out, which depends on the seed only."""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import KeyedWords
from replenish.lab.data.dataset import DataError, Dataset, Int64Array
from replenish.lab.data.images import area_average

# If the data has no test split, one image in this many of each class is held out.
TEST_SHARE = 5
# A larger size is probably a mistake, and would exhaust the memory.
MAX_IMAGE_SIZE = 4096


class LabPurpose(enum.IntEnum):
    """The lab's uses of random words. The numbers differ from those of the core's `Purpose`."""

    AUGMENTATION = 7
    IMAGES_PER_CLASS = 8
    SPLIT = 9
    FIRST_FLIP = 12


def choose(labels: Int64Array, counts: Int64Array, seed: int, purpose: LabPurpose) -> npt.NDArray[np.bool_]:
    """Choose `counts[c]` images of every class c, uniformly, and return them as a mask.

    Every image has its own random word, and a class keeps the images with the lowest words. So a larger choice contains
    every smaller one, and the choice in one class does not depend on the counts of the others.
    """
    words = KeyedWords(seed, purpose).at(0).words(len(labels))
    order = np.lexsort((words, labels))
    starts = np.searchsorted(labels[order], np.arange(len(counts)))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels)) - starts[labels[order]]
    return rank < counts[labels]


def held_out(labels: Int64Array, classes: int, seed: int, name: str) -> npt.NDArray[np.bool_]:
    """Return the mask of a stratified test split: a fifth of each class, to the nearest image, at least 1."""
    sizes = np.bincount(labels, minlength=classes)
    if sizes.min() < 2:
        raise DataError(
            f"{name}: a class with {sizes.min()} images cannot be split into training and test images; "
            "every class needs at least 2"
        )
    counts = np.maximum(1, (2 * sizes + TEST_SHARE) // (2 * TEST_SHARE))
    return choose(labels, counts, seed, LabPurpose.SPLIT)


def reduce(
    dataset: Dataset,
    *,
    images_per_class: int | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
    held_out: bool = False,
) -> Dataset:
    """Reduce a dataset, deterministically, for studies of few images per class or for a small machine.

    The test split keeps all its images, so that test errors with different `images_per_class` can be compared.

    Args:
        dataset: The dataset, which is not changed.
        images_per_class: How many training images each class keeps, chosen by `seed`. The images kept with a smaller
            number are among those kept with a larger one. Data with subclasses (the coarse labels of CIFAR-100)
            keep this many of each subclass.
        image_size: New height and width (one int for both), by area average.
        seed: The seed of the choice of images.
        held_out: Whether to return the training images that are not kept, as `held_out_images` and `held_out_labels`.
            They are more images to test on.

    Example:
        >>> from replenish.lab.data import load, reduce
        >>> reduce(load("digits"), images_per_class=20, image_size=4).train_images.shape
        (200, 4, 4, 1)
    """
    seed = checks.seed(seed)
    kept = np.ones(len(dataset.train_labels), dtype=bool)
    if images_per_class is not None:
        kept = _few_of_each(dataset, checks.integer("images_per_class", images_per_class, minimum=1), seed)
    train, left = np.flatnonzero(kept), np.flatnonzero(~kept)
    if checks.boolean("held_out", held_out) and not left.size:
        raise ValueError(
            f"held_out=True needs training images that are not kept, but images_per_class={images_per_class} keeps all "
            f"of {dataset.name}"
        )
    height, width = dataset.image_size if image_size is None else size_pair(image_size)
    if not left.size and (height, width) == dataset.image_size:
        return dataset
    subclasses = dataset.train_subclasses
    return Dataset(
        train_images=area_average(dataset.train_images[train], height, width),
        train_labels=dataset.train_labels[train],
        test_images=area_average(dataset.test_images, height, width),
        test_labels=dataset.test_labels,
        class_names=dataset.class_names,
        name=dataset.name,
        held_out_images=area_average(dataset.train_images[left], height, width) if held_out else None,
        held_out_labels=dataset.train_labels[left] if held_out else None,
        train_subclasses=None if subclasses is None else subclasses[train],
        train_files=None if dataset.train_files is None else dataset.train_files[train],
    )


def _few_of_each(dataset: Dataset, count: int, seed: int) -> npt.NDArray[np.bool_]:
    """Return the mask of `count` images of each class, or of each subclass if there are any."""
    groups = dataset.train_labels if dataset.train_subclasses is None else dataset.train_subclasses
    sizes = np.bincount(groups)
    if scarce := [int(group) for group in np.unique(groups) if sizes[group] < count]:
        group, fewest = scarce[0], min(int(sizes[group]) for group in scarce)
        kind = f"class {dataset.class_names[group]!r}" if groups is dataset.train_labels else f"subclass {group}"
        raise ValueError(
            f"images_per_class should be at most {fewest} for {dataset.name}, but got {count}: {kind} has "
            f"{sizes[group]} training images"
        )
    return choose(groups, np.full(len(sizes), count), seed, LabPurpose.IMAGES_PER_CLASS)


def size_pair(image_size: int | tuple[int, int]) -> tuple[int, int]:
    """Return (height, width) from one int or two."""
    pair = image_size if isinstance(image_size, (tuple, list)) else (image_size, image_size)
    if len(pair) != 2:
        raise ValueError(f"image_size should be an int or (height, width), but got {image_size!r}")
    height, width = (checks.integer("image_size", side, minimum=1, maximum=MAX_IMAGE_SIZE) for side in pair)
    return height, width
