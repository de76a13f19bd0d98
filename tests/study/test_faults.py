"""Part S of the second study: the effect of each fault on the data and the scores. Uses CIFAR-100 if available."""

import dataclasses

import numpy as np
import pytest
import torch

from replenish.lab.data import load
from study.networks import overlapping
from study.second import faults


@pytest.fixture(scope="module")
def data(real_cifar100):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPLENISH_DATA", str(real_cifar100))
        yield load("cifar100")


def test_a_fault_changes_only_its_own_fields():
    changed = {name: faults.HONEST.differences(fault.config) for name, fault in faults.TRAININGS.items()}
    assert {name: sorted(fields) for name, fields in changed.items()} == {
        "coarse labels": ["dataset"],
        "test images in the pool": ["dataset"],
        "twice the steps": ["decay_epochs", "epochs"],
        "augmentation drawn once": ["dataset", "flip", "pad"],
    }


def test_the_pool_with_test_images_has_every_image_once(data):
    config = faults.TRAININGS["test images in the pool"].config
    found = faults.with_test_images(config)
    assert found.train_images.shape == (60_000, 32, 32, 3)
    assert np.array_equal(found.train_images[50_000:], data.test_images)
    assert np.array_equal(found.test_labels, data.test_labels)


def test_an_augmentation_drawn_once_depends_on_the_seed_only(data):
    config = faults.TRAININGS["augmentation drawn once"].config
    first, again, other = (faults.augmented_once(dataclasses.replace(config, seed=seed)) for seed in (100, 100, 101))
    assert np.array_equal(first.train_images, again.train_images)
    same = (first.train_images == other.train_images).all(axis=(1, 2, 3)).mean()
    assert same < 0.02  # one in 162 draws is equal, and some images are uniform
    assert np.array_equal(first.test_images, data.test_images)


def test_an_untrained_network_has_the_score_of_guessing():
    torch.manual_seed(0)
    fine = torch.arange(400) % 100
    test = faults.TestSplit(torch.randn(400, 3, 32, 32), fine, fine // 5)
    found = faults.scoring_faults(overlapping(100), test)
    assert len(found) == 4
    assert found["top-2 counted"] == pytest.approx(98, abs=2.5)
    assert found["scored on the coarse labels"] == pytest.approx(95, abs=4)


def test_a_perfect_network_has_no_errors_under_any_score():
    """Its logits are the pixels themselves, so batch statistics do not matter."""
    fine = torch.arange(400) % 100
    images = torch.zeros(400, 100, 1, 1)
    images[torch.arange(400), fine] = 1
    found = faults.scoring_faults(torch.nn.Flatten(), faults.TestSplit(images, fine, fine // 5))
    assert set(found.values()) == {0.0}
