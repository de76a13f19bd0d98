from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from replenish.lab.data import DataError, load


def splits(**changes):
    rng = np.random.default_rng(0)
    arrays = {
        "train_images": rng.integers(0, 256, (6, 4, 4, 3), dtype=np.uint8),
        "train_labels": np.array([0, 1, 2, 0, 1, 2], np.uint8),
        "test_images": rng.integers(0, 256, (3, 4, 4, 3), dtype=np.uint8),
        "test_labels": np.array([0, 1, 2], np.int32),
    }
    arrays |= changes
    return {key: value for key, value in arrays.items() if value is not None}


def whole(**changes):
    rng = np.random.default_rng(0)
    arrays = {
        "images": rng.integers(0, 256, (20, 4, 4), dtype=np.uint8),
        "labels": np.arange(20) % 2,
    }
    return arrays | changes


def save(tmp_path: Path, arrays) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    return path


def test_four_arrays(tmp_path: Path):
    dataset = load(save(tmp_path, splits()))
    assert dataset.train_labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert dataset.train_labels.dtype == np.int64
    assert dataset.class_names == ("0", "1", "2")
    assert dataset.name == "data.npz"


def test_class_names_and_grey_images(tmp_path: Path):
    grey = splits(class_names=np.array(["x", "y", "z"]))
    grey["train_images"], grey["test_images"] = grey["train_images"][..., 0], grey["test_images"][..., 0]
    dataset = load("data.npz", root=save(tmp_path, grey).parent)
    assert dataset.class_names == ("x", "y", "z")
    assert dataset.train_images.shape == (6, 4, 4, 1)


def test_one_set_is_split_by_the_seed(tmp_path: Path):
    path = save(tmp_path, whole())
    dataset = load(path)
    assert np.bincount(dataset.test_labels).tolist() == [2, 2]
    assert len(dataset.train_labels) == 16
    assert load(path, seed=0).fingerprint == dataset.fingerprint != load(path, seed=1).fingerprint


def test_one_set_with_a_split_array(tmp_path: Path):
    arrays = whole(split=np.array([0] * 14 + [1] * 6))
    dataset = load(save(tmp_path, arrays))
    np.testing.assert_array_equal(dataset.test_images[..., 0], arrays["images"][14:])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (splits(test_labels=None), "has no array 'test_labels'"),
        (splits(train_images=np.zeros((6, 4, 4, 3))), "train_images should be uint8 .* but is float64"),
        (splits(train_labels=np.zeros(6)), "train_labels should be one axis of integers, but is float64"),
        (
            splits(train_labels=np.array([0, 1, 2, 0, 1, -3])),
            "should be the numbers of classes, from 0, but got -3$",
        ),
        (splits(train_labels=np.array([0, 1, 2, 0, 1, 10**12])), "but got 1000000000000$"),
        (splits(class_names=np.array(["x", "y"])), "train_labels should be from 0 to 1, but got 2"),
        (splits(class_names=np.array([1, 2, 3])), "class_names should be one axis of strings"),
        (splits(class_names=np.array(["x", "y", "z"], dtype=object)), "it holds Python objects"),
        (whole(labels=np.arange(19) % 2), "20 images have 19 labels"),
        (whole(split=np.full(20, 2)), "split should hold 0 .* or 1"),
        (whole(labels=np.array([0] * 19 + [1])), "a class with 1 images cannot be split"),
    ],
)
def test_wrong_arrays(tmp_path: Path, arrays, sentence: str):
    with pytest.raises(DataError, match=sentence) as caught:
        load(save(tmp_path, arrays))
    assert "\n" not in str(caught.value)


def test_objects_that_would_run_code_are_not_read(tmp_path: Path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "witness"),)

    path = save(tmp_path, splits(train_labels=np.array([Hostile()] * 6)))
    with pytest.raises(DataError, match="it holds Python objects"):
        load(path)
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.98])
def test_truncated_files(tmp_path: Path, share: float):
    path = save(tmp_path, splits())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match="cut short|not a readable"):
        load(path)


def test_a_header_that_claims_too_large_an_array(tmp_path: Path):
    path = save(tmp_path, splits())
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (900000000000, 4, 4, 3), }"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train_images.npy", header + text.ljust(117) + b"\n" + b"x" * 50)
    with pytest.raises(DataError, match="not a readable .npz file"):
        load(path)


def test_channels_first_are_refused(tmp_path: Path):
    path = tmp_path / "data.npz"
    images = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 8), dtype=np.uint8)
    np.savez(path, images=images, labels=np.arange(40) % 2)
    with pytest.raises(DataError, match=r"seem to have the channels first; .* images.transpose\(0, 2, 3, 1\)"):
        load(path)
    np.savez(path, images=images.transpose(0, 2, 3, 1), labels=np.arange(40) % 2)
    assert load(path).train_images.shape[1:] == (8, 8, 3)
    np.savez(path, images=np.zeros((40, 8, 8, 13), np.uint8), labels=np.arange(40) % 2)  # as from a satellite
    assert load(path).channels == 13
