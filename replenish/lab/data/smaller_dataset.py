"""Smaller versions of a dataset, and which images are kept or held out: random choices that depend on the seed only."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import KeyedWords
from replenish.lab.data.dataset import DataError, Dataset, Int64Array
from replenish.lab.data.images import area_average

# If the data has no test split, one image in this many of each class is held out.
TEST_SHARE = 5
# A larger size is probably a mistake, and memory would run out before any message.
MAX_IMAGE_SIZE = 4096


class LabPurpose(enum.IntEnum):
    """The lab's uses of random words; the numbers do not overlap with the core's `Purpose`."""

    AUGMENTATION = 7
    IMAGES_PER_CLASS = 8
    SPLIT = 9
    FIRST_FLIP = 12


def choose(labels: Int64Array, counts: Int64Array, seed: int, purpose: LabPurpose) -> npt.NDArray[np.bool_]:
    """Choose `counts[c]` images of every class c, uniformly, and return them as a mask.

    Every image has its own random word, and a class keeps the images with the lowest words. So a choice of few images
    is part of every choice of more, and one class's choice does not depend on another's count.
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
    classes: int | Sequence[int | str] | None = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 0,
    held_out: bool = False,
) -> Dataset:
    """Reduce a dataset, deterministically, for studies of few images per class or for a small machine.

    The test split loses only the images of the classes that are left out, so test errors of different
    `images_per_class` are measured on the same images.

    Args:
        dataset: The dataset, which is not changed.
        images_per_class: How many training images each class keeps, chosen by `seed`. The images kept with a smaller
            number are among those kept with a larger one. Data with subclasses (the coarse labels of CIFAR-100)
            keep this many of each subclass.
        classes: How many classes to keep, from the first; or which ones, by name or by number, in their new order.
        image_size: New height and width (one int for both), by area average.
        seed: The seed of the choice of images.
        held_out: Whether to return the training images that are not kept, of the classes that are, as
            `held_out_images` and `held_out_labels`: more images to test on.

    Example:
        >>> from replenish.lab.data import load, reduce
        >>> small = reduce(load("digits"), images_per_class=20, classes=[3, 8], image_size=4)
        >>> small.train_images.shape, small.class_names
        ((40, 4, 4, 1), ('3', '8'))
    """
    seed = checks.seed(seed)
    test = np.arange(len(dataset.test_labels))
    class_names = dataset.class_names
    new_label: Int64Array = np.arange(dataset.num_classes)

    kept = np.ones(len(dataset.train_labels), dtype=bool)
    if classes is not None:
        chosen = chosen_classes(dataset, classes)
        class_names = tuple(dataset.class_names[index] for index in chosen)
        new_label = np.full(dataset.num_classes, -1)
        new_label[chosen] = np.arange(len(chosen))
        kept &= new_label[dataset.train_labels] >= 0
        test = test[new_label[dataset.test_labels] >= 0]
    of_these_classes = kept.copy()
    if images_per_class is not None:
        kept &= _few_of_each(dataset, kept, checks.integer("images_per_class", images_per_class, minimum=1), seed)
    left = np.flatnonzero(of_these_classes & ~kept) if checks.boolean("held_out", held_out) else None
    if left is not None and not left.size:
        raise ValueError(
            f"held_out=True needs training images that are not kept, but images_per_class={images_per_class} keeps all "
            f"of {dataset.name}"
        )
    train = np.flatnonzero(kept)

    height, width = dataset.image_size if image_size is None else size_pair(image_size)
    whole = len(train) == len(kept) and len(test) == len(dataset.test_labels) and classes is None
    if whole and (height, width) == dataset.image_size:
        return dataset
    subclasses = dataset.train_subclasses
    return Dataset(
        train_images=area_average(dataset.train_images[train], height, width),
        train_labels=new_label[dataset.train_labels[train]],
        test_images=area_average(dataset.test_images[test], height, width),
        test_labels=new_label[dataset.test_labels[test]],
        class_names=class_names,
        name=dataset.name,
        held_out_images=None if left is None else area_average(dataset.train_images[left], height, width),
        held_out_labels=None if left is None else new_label[dataset.train_labels[left]],
        # Renumbered, so that a subclass without images leaves no gap.
        train_subclasses=None if subclasses is None else np.unique(subclasses[train], return_inverse=True)[1],
        train_files=None if dataset.train_files is None else dataset.train_files[train],
    )


def _few_of_each(dataset: Dataset, kept: npt.NDArray[np.bool_], count: int, seed: int) -> npt.NDArray[np.bool_]:
    """Return the mask of `count` images of each class, or of each subclass if there are any."""
    groups = dataset.train_labels if dataset.train_subclasses is None else dataset.train_subclasses
    sizes = np.bincount(groups)
    scarce = [int(group) for group in np.unique(groups[kept]) if sizes[group] < count]
    if scarce:
        fewest = min(int(sizes[group]) for group in scarce)
        what = (
            f"class {dataset.class_names[scarce[0]]!r}" if groups is dataset.train_labels else f"subclass {scarce[0]}"
        )
        raise ValueError(
            f"images_per_class should be at most {fewest} for {dataset.name}, "
            f"but got {count}: {what} has {sizes[scarce[0]]} training images"
        )
    # Chosen on the full dataset, so that the choice does not depend on which classes stay.
    return choose(groups, np.full(len(sizes), count), seed, LabPurpose.IMAGES_PER_CLASS)


def chosen_classes(dataset: Dataset, classes: int | Sequence[int | str]) -> list[int]:
    """Return the numbers of the chosen classes, in their new order."""
    if not isinstance(classes, Sequence):
        count = checks.integer("classes", classes, minimum=1, maximum=dataset.num_classes)
        return list(range(count))
    if isinstance(classes, (str, bytes)) or not classes:
        raise TypeError(f"classes should be an int or a list of classes, but got {classes!r}")
    chosen = []
    for entry in classes:
        if isinstance(entry, str):
            if entry not in dataset.class_names:
                raise DataError(f"{dataset.name} has no class named {entry!r}")
            chosen.append(dataset.class_names.index(entry))
        else:
            last = dataset.num_classes - 1
            chosen.append(checks.integer("a number in classes", entry, minimum=0, maximum=last))
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"classes should name every class once, but got {list(classes)!r}")
    return chosen


def size_pair(image_size: int | tuple[int, int]) -> tuple[int, int]:
    """Return (height, width) from one int or two."""
    pair = image_size if isinstance(image_size, (tuple, list)) else (image_size, image_size)
    if len(pair) != 2:
        raise ValueError(f"image_size should be an int or (height, width), but got {image_size!r}")
    height, width = (checks.integer("image_size", side, minimum=1, maximum=MAX_IMAGE_SIZE) for side in pair)
    return height, width
