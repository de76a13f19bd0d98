"""What makes a comparison doubtful whatever its intervals say: to be told before anything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from replenish.lab.data import Dataset
from replenish.lab.report.findings import Pair, left_out, mixed_words
from replenish.lab.report.grouping import Group

#: Below this one image is more than half a point.
FEW_TEST_IMAGES = 200
#: An error above this share of what guessing gives is that of a network that has learnt next to nothing.
UNTRAINED = 0.9
#: With fewer images wrong there is nothing left in which orders could differ.
FEW_WRONG_IMAGES = 3


def doubts(dataset: Dataset, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield what is doubtful about runs, the first group's being those that the others are set against."""
    images = len(dataset.test_labels)
    if images < FEW_TEST_IMAGES:
        yield (
            f"the test set is tiny: one of its {images} images is {100 / images:.2g} points, and the intervals say "
            f"nothing about other test images"
        )
    means = [sum(group.errors.values()) / len(group.errors) for group in groups.values() if group.errors]
    guessing = 100 * (1 - np.bincount(dataset.test_labels).max() / images)
    if means and min(means) > UNTRAINED * guessing:
        yield (
            f"the networks are untrained: the least mean test error is {min(means):.1f} %, and guessing the most "
            f"frequent class gives {guessing:.1f} %; more epochs or another learning rate would help"
        )
    if means and max(means) * images / 100 < FEW_WRONG_IMAGES:
        yield (
            f"the networks are saturated: they are wrong on fewer than {FEW_WRONG_IMAGES} of {images} test images on "
            f"average; fewer training images a class, or harder data, would leave something to differ in"
        )
    baseline, *others = groups.values()
    for group in others:
        pair = Pair(group, baseline)
        yield from (said.strip().removesuffix(".") for said in (left_out(pair), mixed_words(pair)) if said)
