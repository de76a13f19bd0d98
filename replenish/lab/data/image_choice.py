"""Which images are kept or held out: random choices within each class, pure functions of the seed."""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from replenish.draws import KeyedWords
from replenish.lab.data.dataset import DataError, Int64Array

# Where the data has no test split, one image in this many of each class is held out.
TEST_SHARE = 5


class LabPurpose(enum.IntEnum):
    """What the lab uses random words for; the numbers do not overlap with the core's `Purpose`."""

    AUGMENTATION = 7
    IMAGES_PER_CLASS = 8
    SPLIT = 9
    FIRST_FLIP = 12


def choose(labels: Int64Array, counts: Int64Array, seed: int, purpose: LabPurpose) -> npt.NDArray[np.bool_]:
    """Choose `counts[c]` images of every class c, uniformly, and return them as a mask.

    Every image has a random word of its own and a class keeps its lowest words: so a choice of few
    images is part of every choice of more, and one class's choice does not depend on another's count.
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
