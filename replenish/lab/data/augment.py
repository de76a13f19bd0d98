"""The paper's augmentation: a mirror image half of the time, and a random crop from the padded image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.lab.data.smaller_dataset import LabPurpose

# With more padding, crops would show more padding than image even for large images.
MAX_PAD = 64
# About this many draws share a key, since a key per batch would take a tenth of the batch's time. The number is part of
# the frozen stream, as in the core.
DRAWS_PER_BLOCK = 16384


@dataclass(frozen=True)
class Augmentation:
    """How training images are augmented (section 3.1): mirrored with probability 1/2, padded, cropped.

    Args:
        pad: Pixels of padding on each side. The crop has the size of the image, so there are (2 * pad + 1) ** 2 crops.
            The paper has 4, for images of 32 x 32.
        flip: Whether half of the images are mirrored left to right. Switch it off if a mirror image belongs to another
            class or to none, as with digits.
        alternating: Whether each image is mirrored at every second visit. Only its first visit is random, so two
            consecutive visits always show both sides. This is the alternating flip of airbench (Jordan, "94 % on
            CIFAR-10 in 3.29 seconds on a single GPU", 2024).
    """

    pad: int = 4
    flip: bool = True
    alternating: bool = False

    def __post_init__(self) -> None:
        checks.integer("pad", self.pad, minimum=0, maximum=MAX_PAD)
        checks.boolean("flip", self.flip)
        checks.boolean("alternating", self.alternating)
        if self.alternating and not self.flip:
            raise ValueError("alternating should be with flip=True, since it chooses which images are mirrored")

    @property
    def outcomes(self) -> int:
        """The number of different results for one image: 162 in the paper."""
        return (2 * self.pad + 1) ** 2 * (1 + self.flip)


class AugmentationDraws:
    """The crop and mirroring of every image of every step: a pure function of (seed, step, place in the batch).

    One integer, exactly uniform over the outcomes, decides the crop and the mirroring of an image. Every process draws
    for all places of the *global* batch and takes its own, so the result does not depend on the number of processes.
    Two copies of one sample in a batch have two places, and so two crops.

    Example:
        >>> draws = AugmentationDraws(Augmentation(), seed=0, batch_size=64)
        >>> rows, columns, flips = draws.at(1000)
        >>> rows.shape, int(rows.max()), int(flips.max())
        ((64,), 8, 1)
    """

    def __init__(self, augmentation: Augmentation, seed: int, batch_size: int) -> None:
        self._augmentation, self._batch_size = augmentation, batch_size
        self._words = KeyedWords(seed, LabPurpose.AUGMENTATION)
        self._steps_per_block = max(1, DRAWS_PER_BLOCK // batch_size)
        self._block = -1
        self._parts: Int64Array = np.empty((0, 3, batch_size), dtype=np.int64)

    def at(self, step: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the first row and column of each crop, from 0 to 2 * pad, and 1 for a mirrored image, else 0."""
        block, place = divmod(step, self._steps_per_block)
        if block != self._block:
            self._parts, self._block = self._drawn(block), block
        rows, columns, flips = self._parts[place]
        return rows, columns, flips

    def _drawn(self, block: int) -> Int64Array:
        """Return an array (steps, 3, batch_size): the row, column and flip of every place."""
        count = self._steps_per_block * self._batch_size
        drawn = self._words.at(block).below(self._augmentation.outcomes, count)
        side = 2 * self._augmentation.pad + 1
        parts = np.unravel_index(drawn.reshape(-1, self._batch_size), (side, side, 1 + self._augmentation.flip))
        return np.stack(parts, axis=1).astype(np.int64, copy=False)


class AlternatingFlips:
    """Mirrors every second visit of an image. A draw for each image decides whether its first visit is mirrored.

    Example:
        >>> flips = AlternatingFlips(seed=0, num_images=10)
        >>> first, second = (flips.at(np.arange(10), np.full(10, visit)) for visit in (4, 5))
        >>> (first + second).tolist()
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """

    def __init__(self, seed: int, num_images: int) -> None:
        self._first = KeyedWords(seed, LabPurpose.FIRST_FLIP).at(0).below(2, num_images)

    def at(self, images: Int64Array, visits: Int64Array) -> Int64Array:
        """Return 1 for each image that is mirrored at the visit of the given number, else 0."""
        return (self._first[images] + visits) & 1
