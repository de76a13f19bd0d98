"""Data in memory: arrays, torch datasets, Hugging Face datasets, and kinds that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import TensorDataset

from replenish.lab.data import DataError, Dataset, as_dataset, load

LABELS = np.arange(20) % 2
IMAGES = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)


class Pictures(TorchDataset[Any]):
    """A map-style dataset like torchvision's, with Pillow images."""

    classes = ("even", "odd")

    def __init__(self, images: np.ndarray[Any, Any] = IMAGES) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return Image.fromarray(self.images[index]), int(LABELS[index])


DEEP = [(Image.new("I;16", (8, 8), 40_000), label) for label in LABELS.tolist()]  # Pillow would convert it to white


def hugging_face(part: slice = slice(None)) -> datasets.Dataset:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["even", "odd"])})
    pictures = [Image.fromarray(image) for image in IMAGES[part]]
    return datasets.Dataset.from_dict({"image": pictures, "label": LABELS[part].tolist()}, features=features)


def channels_first(values: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(values.transpose(0, 3, 1, 2).copy())


@pytest.mark.parametrize(
    "data",
    [
        (IMAGES, LABELS),
        (IMAGES, LABELS[:, None]),
        (channels_first(IMAGES), torch.from_numpy(LABELS)),
        (IMAGES / 255, LABELS),
        TensorDataset(channels_first(IMAGES).float() / 255, torch.from_numpy(LABELS)),
        TensorDataset(channels_first(IMAGES), torch.from_numpy(LABELS)),
        Pictures(),
        hugging_face(),
        hugging_face().with_format("torch"),
    ],
    ids=["arrays", "column", "tensors", "floats", "float tensors", "torch", "pillow", "hugging face", "its tensors"],
)
def test_all_kinds_are_the_same_data(data: Any) -> None:
    found, plain = as_dataset(data), as_dataset((IMAGES, LABELS))
    assert isinstance(found, Dataset)
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        assert np.array_equal(getattr(found, name), getattr(plain, name)), name
    assert len(found.test_labels) == 4
    named = isinstance(data, (Pictures, datasets.Dataset))
    assert found.class_names == (("even", "odd") if named else ("0", "1"))


@pytest.mark.parametrize(
    "data",
    [
        ((IMAGES[:12], LABELS[:12]), (IMAGES[12:], LABELS[12:])),
        {"train": (IMAGES[:12], LABELS[:12]), "test": (IMAGES[12:], LABELS[12:])},
        {"train": (IMAGES[:12], LABELS[:12]), "validation": (IMAGES[12:], LABELS[12:])},
        [Pictures(IMAGES[:12]), TensorDataset(channels_first(IMAGES[12:]), torch.from_numpy(LABELS[12:]))],
        datasets.DatasetDict(train=hugging_face(slice(12)), test=hugging_face(slice(12, None))),
    ],
    ids=["keras", "by name", "validation", "two datasets", "hugging face"],
)
def test_splits_of_your_own_are_kept(data: Any) -> None:
    found = as_dataset(data, name="mine")
    assert np.array_equal(found.train_images, IMAGES[:12])
    assert np.array_equal(found.test_images, IMAGES[12:])
    assert found.name == "mine"


def test_grey_images_of_several_sizes() -> None:
    sizes = [Image.fromarray(np.full((4 + index, 6), 10 * index, np.uint8)) for index in range(8)]
    data = [(image, index % 2) for index, image in enumerate(sizes)]
    with pytest.raises(DataError, match="image 1 is 5 x 6 pixels but image 0 is 4 x 6; give an image size"):
        as_dataset({"train": data, "test": data})
    found = as_dataset({"train": data, "test": data}, image_size=4)
    assert found.train_images.shape == (8, 4, 4, 1)
    assert found.train_images[3].tolist() == np.full((4, 4, 1), 30).tolist()
    mixed = as_dataset({"train": data, "test": Pictures()}, image_size=4)
    assert mixed.train_images.shape == (8, 4, 4, 3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((IMAGES, LABELS[:5]), "has 20 images and 5 labels"),
        ((IMAGES, np.stack([LABELS, LABELS], axis=1)), "one axis of integers"),
        ((IMAGES, LABELS / 1.0), "one axis of integers"),
        ((IMAGES, LABELS - 1), "numbers of classes, from 0, but got -1"),
        ((IMAGES, LABELS * 1000), "numbers of classes, from 0, but got 1000"),
        (((IMAGES - 128.0) / 64, LABELS), "floats from 0 to 1, but goes from -2 .* leave out the standardisation"),
        ((IMAGES[..., :2], LABELS), "grey or have 1 or 3 channels"),
        ((IMAGES, LABELS, IMAGES), "but got 3 parts"),
        ({"train": Pictures()}, "should have train and one of test, val"),
        ([(1, 2, 3), (4, 5, 6)], "should give .image, label., but item 0 is a int"),
        (iter([1]), "a dataset with a length and indices, .*, but got list_iterator"),
        (TensorDataset(torch.zeros(0, 1, 8, 8), torch.zeros(0)), "is empty"),
        ((DEEP, Pictures()), "image 0 of own data: the training split has more than 8 bits a channel .'I;16'.; give"),
    ],
)
def test_unusable_data_are_refused(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_dataset(data)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x_train": IMAGES[:12], "y_train": LABELS[:12, None], "x_test": IMAGES[12:], "y_test": LABELS[12:, None]},
        {"train_images": IMAGES[:12], "train_labels": LABELS[:12, None]}
        | {"val_images": IMAGES[12:], "val_labels": LABELS[12:, None]},
    ],
    ids=["keras", "validation only"],
)
def test_names_of_keras_and_medmnist_in_npz(arrays: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    found = load(tmp_path / "data.npz")
    assert np.array_equal(found.train_images, IMAGES[:12])
    assert np.array_equal(found.test_labels, LABELS[12:])


class Streaming:
    """Like a Hugging Face dataset with `streaming=True`: columns, but no length."""

    features, column_names = {"image": None, "label": None}, ["image", "label"]

    def __iter__(self) -> Any:
        raise AssertionError("it should not be read")


def test_a_streaming_dataset_is_refused() -> None:
    with pytest.raises(DataError, match=r"with a length and indices, such as .*streaming=False\), but got Streaming"):
        as_dataset(Streaming())
