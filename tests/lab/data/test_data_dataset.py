from __future__ import annotations

import numpy as np
import pytest

from replenish.lab.data import DataError, Dataset


def make(**changes):
    rng = np.random.default_rng(0)
    arguments = {
        "train_images": rng.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8),
        "train_labels": np.array([0, 1, 2, 0, 1, 2]),
        "test_images": rng.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8),
        "test_labels": np.array([2, 1, 0]),
        "class_names": ("a", "b", "c"),
        "name": "made",
    }
    return Dataset(**(arguments | changes))


def test_mean_and_std_are_the_training_splits_own():
    dataset = make()
    scaled = dataset.train_images.astype(np.float64) / 255
    np.testing.assert_allclose(dataset.mean, scaled.mean(axis=(0, 1, 2)), rtol=1e-13)
    np.testing.assert_allclose(dataset.std, scaled.std(axis=(0, 1, 2)), rtol=1e-13)


def test_a_constant_channel_has_std_one():
    images = np.full((6, 4, 5, 3), 7, dtype=np.uint8)
    dataset = make(train_images=images)
    np.testing.assert_allclose(dataset.mean, 7 / 255, rtol=1e-13)
    assert (dataset.std == 1).all()


def test_fingerprint_covers_everything_except_the_name():
    base = make()
    assert base.fingerprint == make().fingerprint == make(name="other").fingerprint
    assert len(base.fingerprint) == 64
    altered = base.train_images.copy()
    altered[5, 3, 4, 2] ^= 1
    others = [
        make(train_images=altered),
        make(train_labels=np.array([0, 1, 2, 0, 2, 1])),
        make(test_labels=np.array([0, 1, 2])),
        make(class_names=("a", "b", "d")),
        make(class_names=("ab", "c", "")),
        make(train_images=base.train_images.reshape(6, 5, 4, 3), test_images=base.test_images.reshape(3, 5, 4, 3)),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 7


def test_arrays_cannot_be_changed():
    dataset = make()
    for array in (dataset.train_images, dataset.train_labels, dataset.test_images, dataset.test_labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"train_images": np.zeros((6, 4, 5, 3))}, "train_images should be an array of uint8.*float64"),
        ({"train_images": np.zeros((6, 4, 5), np.uint8)}, r"should have the shape .* but got \(6, 4, 5\)"),
        ({"train_images": np.zeros((5, 4, 5, 3), np.uint8)}, "5 train images have 6 labels"),
        ({"test_images": np.zeros((3, 4, 4, 3), np.uint8)}, "differ in height, width or channels"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 2], np.int32)}, "should be an array of int64.*int32"),
        ({"train_labels": np.array([0, 1, 2, 0, 1, 3])}, "should be from 0 to 2, but got 3"),
        ({"train_labels": np.array([0, 1, 0, 0, 1, 0])}, "class 'c' has no image in the train split"),
        ({"class_names": ("a", "b", "a")}, "two classes are both named 'a'"),
        ({"class_names": ()}, "should be one or more strings"),
        ({"train_subclasses": np.arange(5)}, "a number for each of the 6 training images"),
        ({"train_subclasses": np.array([0, 0, 1, 1, 2, 2])}, "every subclass in one class"),
        (
            {"held_out_images": np.zeros((2, 4, 5, 3), np.uint8)},
            "held_out_labels should be an array of int64, but got NoneType",
        ),
        (
            {"held_out_images": np.zeros((2, 4, 5, 3), np.uint8), "held_out_labels": np.array([0])},
            "2 held_out images have 1 labels",
        ),
    ],
)
def test_contradictory_data_is_refused_in_one_sentence(changes, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)
