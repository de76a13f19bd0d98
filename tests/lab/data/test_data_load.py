from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from replenish.lab.data import DATASETS, DataError, load, reduce


def test_digits():
    digits = load("digits")
    assert digits.train_images.shape == (1438, 8, 8, 1)
    assert digits.test_images.shape == (359, 8, 8, 1)
    assert digits.class_names == tuple("0123456789")
    levels = np.unique(digits.train_images)
    assert len(levels) == 17
    assert (levels[0], levels[-1]) == (0, 255)
    # A fifth of every class is held out.
    test, train = np.bincount(digits.test_labels), np.bincount(digits.train_labels)
    assert (np.abs(test - (test + train) / 5) <= 0.5).all()


def test_reduction():
    assert load("digits", images_per_class=3, image_size=4, seed=2).train_images.shape == (30, 4, 4, 1)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("cifar-100", "cifar100"), ("CIFAR10", "cifar10"), ("digit", "digits"), ("cifra10", "cifar10")],
)
def test_an_unknown_name_suggests_the_nearest(name: str, suggestion: str):
    with pytest.raises(ValueError, match=f"no dataset or path named '{name}'; did you mean '{suggestion}'"):
        load(name)


def test_other_names():
    with pytest.raises(
        ValueError, match="known are digits, cifar10, cifar100, cifar100-coarse, folders and .npz files"
    ):
        load("imagenet")
    with pytest.raises(ValueError, match="no dataset or path named ''"):
        load("")
    with pytest.raises(FileNotFoundError, match=r"nowhere/data.npz does not exist"):
        load("nowhere/data.npz")
    with pytest.raises(TypeError, match="name should be a str or a path, but got 5"):
        load(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seed should be at least 0"):
        load("digits", seed=-1)


def test_a_file_of_another_kind(tmp_path: Path):
    path = tmp_path / "data.csv"
    path.write_text("1,2")
    with pytest.raises(DataError, match="neither a folder of images nor an .npz file"):
        load(path)


def test_the_list_of_datasets_describes_digits():
    known, dataset = DATASETS["digits"], load("digits")
    assert (len(dataset.train_labels), len(dataset.test_labels)) == (known.train_images, known.test_images)
    assert (dataset.num_classes, dataset.channels) == (known.classes, known.channels)
    assert dataset.image_size == (known.image_size, known.image_size)
    assert len(reduce(dataset, images_per_class=3).train_labels) == known.kept_images(3)
