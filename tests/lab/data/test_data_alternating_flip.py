"""The alternating flip: an image is mirrored at every second of its visits, under any order."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest
from contracts import CASES, facts

from replenish.lab.config import RunConfig
from replenish.lab.data import Augmentation, Batches, Dataset
from replenish.orders import ORDERS, build_order


def half_dark(count: int) -> Dataset:
    """Images whose left half is dark, so that it can be seen which are mirrored."""
    images = np.zeros((count, 2, 2, 1), dtype=np.uint8)
    images[:, :, 1] = 255
    labels = np.arange(count) % 2
    return Dataset(images, labels, images[:2], labels[:2], ("even", "odd"))


def sides(batches: Batches, start: int, stop: int) -> dict[int, list[bool]]:
    """Return for each image whether it was mirrored, visit by visit."""
    seen = defaultdict(list)
    for indices, (images, _) in batches.steps(start, stop):
        for sample, mirrored in zip(indices.tolist(), (images[:, 0, 0, 0] > 0).tolist(), strict=True):
            seen[sample].append(mirrored)
    return seen


def alternating(name: str, **options: object) -> Batches:
    order = build_order(name, 97, 8, **facts(name), **options)
    return Batches(order, half_dark(97), augment=Augmentation(pad=0, alternating=True), seed=3)


@pytest.mark.parametrize("name", [name for name, entry in ORDERS.items() if not entry.batch_sizes_vary])
def test_every_second_visit_is_mirrored_under_any_order(name: str) -> None:
    seen = sides(alternating(name), 0, 60)
    assert all(one != next_one for visits in seen.values() for one, next_one in itertools.pairwise(visits))
    first = [visits[0] for visits in seen.values()]
    assert 0.25 < np.mean(first) < 0.75  # drawn for each image


@pytest.mark.parametrize("name", ["srs", "reshuffling", "independent"])
def test_a_resumed_run_goes_on(name: str) -> None:
    whole, before, after = (sides(alternating(name), *steps) for steps in ((0, 60), (0, 33), (33, 60)))
    assert all(before.get(sample, []) + after.get(sample, []) == visits for sample, visits in whole.items())


def test_processes_share_the_batch_of_one() -> None:
    alone = alternating("srs")
    halves = [
        Batches(alone.order, alone.dataset, augment=alone.augmentation, seed=3, num_replicas=2, rank=rank)
        for rank in range(2)
    ]
    for step in (0, 1, 50):
        images = alone.batch(step)[0]
        assert np.concatenate([half.batch(step)[0].numpy() for half in halves]).tolist() == images.tolist()


def test_the_option_is_off_and_renames_no_folder() -> None:
    plain = RunConfig()
    assert not plain.alternating_flip
    assert "alternating_flip" not in plain.to_dict()
    assert RunConfig(alternating_flip=True).slug != plain.slug
    assert RunConfig.from_dict(RunConfig(alternating_flip=True).to_dict()).alternating_flip
    assert "alternating" not in Batches(CASES["srs"](), half_dark(97)).config()


def test_it_is_refused_where_nothing_is_mirrored() -> None:
    with pytest.raises(ValueError, match="alternating should be with flip=True"):
        Augmentation(flip=False, alternating=True)
    with pytest.raises(ValueError, match="alternating_flip should be with flip=True"):
        RunConfig(flip=False, alternating_flip=True)
