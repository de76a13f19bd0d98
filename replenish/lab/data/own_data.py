"""`as_dataset`: converts arrays, torch datasets and Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array, whole_labels
from replenish.lab.data.image_folder import mode_of
from replenish.lab.data.images import stack
from replenish.lab.data.smaller_dataset import held_out, size_pair

#: Names of the test split; the first one that exists is used.
TEST_NAMES = ("test", "val", "valid", "validation")
_CHANNELS = (1, 3)


def as_dataset(
    data: Any, *, image_size: int | tuple[int, int] | None = None, name: str = "own data", seed: int = 0
) -> Dataset:
    """Return your own data as a `Dataset`; every image is read once, in order.

    A split is a pair of arrays (images, labels), a torch dataset of (image, label), or a Hugging Face dataset with a
    column of images and one of labels. Data are a pair of splits for training and testing, or a mapping with "train"
    and "test" (or "validation"), such as a `DatasetDict`, or one split. From one split, a fifth of every class is held
    out for testing.

    Images are uint8, or floats from 0 to 1, or Pillow's. They are grey or have 1 or 3 channels: the first axis in
    tensors, the last in arrays. Give them without random transforms and without standardisation, since the lab crops,
    mirrors and standardises them.

    Args:
        data: The data; a `Dataset` is returned as it is.
        image_size: Height and width to which every image is resized; needed if the images differ in size.
        name: The name of the data in records and messages.
        seed: The seed of the choice of test images, if the data are one split.

    Example:
        >>> import numpy as np
        >>> images, labels = np.zeros((40, 8, 8), np.uint8), np.arange(40) % 2
        >>> as_dataset((images, labels), name="blank")
        Dataset('blank', 2 classes, 32 training and 8 test images of (8, 8, 1))
    """
    if isinstance(data, Dataset):
        return data
    size = None if image_size is None else size_pair(image_size)
    train, test = _splits(data)
    images, labels, names = _split(train, size, f"{name}: the training split" if test is not None else name)
    if test is None:
        chosen = held_out(labels, int(labels.max()) + 1, checks.seed(seed), name)
        splits = (images[~chosen], labels[~chosen], images[chosen], labels[chosen])
    else:
        test_images, test_labels, _ = _split(test, size, f"{name}: the test split")
        if test_images.shape[3] != images.shape[3]:  # all images of one split are grey
            images, test_images = _coloured(images), _coloured(test_images)
        splits = (images, labels, test_images, test_labels)
    classes = int(max(splits[1].max(), splits[3].max())) + 1
    return Dataset(*splits, class_names=tuple(names or map(str, range(classes))), name=name)


def _splits(data: Any) -> tuple[Any, Any]:
    """Return the training split and the test split, or None for the latter if the data are one split."""
    if isinstance(data, Mapping):
        test = next((data[name] for name in TEST_NAMES if name in data), None)
        if "train" not in data or test is None:
            raise DataError(f"data by name should have train and one of {', '.join(TEST_NAMES)}, but got {list(data)}")
        return data["train"], test
    if isinstance(data, (tuple, list)):
        if len(data) == 2 and not any(map(_is_array, data)):
            return data[0], data[1]
        if len(data) == 2 and all(map(_is_array, data)):
            return data, None
        raise DataError(f"data should be (images, labels) or (training split, test split), but got {len(data)} parts")
    return data, None


def _split(split: Any, size: tuple[int, int] | None, what: str) -> tuple[UInt8Array, Int64Array, list[str] | None]:
    """Return the images, the labels and the class names (None if there are none) of one split."""
    if isinstance(split, (tuple, list)) and len(split) == 2 and all(map(_is_array, split)):
        images, labels = split
        if len(images) != len(labels):
            raise DataError(f"{what} has {len(images)} images and {len(labels)} labels")
        return _stacked(images.__getitem__, len(images), size, what), _labels(labels, what), None
    if not hasattr(split, "__getitem__") or not hasattr(split, "__len__"):
        raise DataError(
            f"{what} should be (images, labels) or a dataset with a length and indices, such as "
            f"load_dataset(..., streaming=False), but got {type(split).__name__}"
        )
    if hasattr(split, "features") and hasattr(split, "column_names"):  # Hugging Face's
        column, labels, names = _columns(split, what)
        images = _stacked(lambda index: split[index][column], len(split), size, what)
        return images, _labels(labels, what), names
    return _of_torch(split, size, what)


def _of_torch(split: Any, size: tuple[int, int] | None, what: str) -> tuple[UInt8Array, Int64Array, list[str] | None]:
    labels: list[Any] = []

    def read(index: int) -> Any:
        item = split[index]
        if not isinstance(item, (tuple, list)) or len(item) < 2:
            raise DataError(f"{what} should give (image, label), but item {index} is a {type(item).__name__}")
        labels.append(item[1])
        return item[0]

    images = _stacked(read, len(split), size, what)
    classes = getattr(split, "classes", None)
    return images, _labels(labels, what), None if classes is None else [str(each) for each in classes]


def _columns(split: Any, what: str) -> tuple[str, Any, list[str] | None]:
    """Return the column of images, the labels, and the names of the classes of a Hugging Face dataset."""
    import datasets

    images = _columns_of(split, datasets.Image, datasets.Array2D, datasets.Array3D)
    labels = _columns_of(split, datasets.ClassLabel)
    labels = labels or [column for column in ("label", "labels", "fine_label") if column in split.column_names]
    if len(images) != 1 or not labels:
        raise DataError(
            f"{what} should have a column of images and one of labels, but its columns are {split.features}"
        )
    return images[0], split[labels[0]], getattr(split.features[labels[0]], "names", None)


def _columns_of(split: Any, *kinds: type) -> list[str]:
    return [column for column in split.column_names if isinstance(split.features[column], kinds)]


def _stacked(read: Any, count: int, size: tuple[int, int] | None, what: str) -> UInt8Array:
    if not count:
        raise DataError(f"{what} should have an image at least, but is empty")

    def decode(index: int) -> UInt8Array:
        return _pixels(read(index), f"image {index} of {what}")

    return stack(count, decode, size, lambda index: f"image {index}", what)


def _pixels(image: Any, what: str) -> UInt8Array:
    """Return one image as uint8 (height, width, 1 or 3)."""
    if hasattr(image, "convert"):  # Pillow's
        image = image.convert(mode_of(image, what))
    from_tensor = hasattr(image, "detach")
    values: npt.NDArray[Any] = image.detach().cpu().numpy() if from_tensor else np.asarray(image)
    if values.ndim == 2:
        values = values[..., np.newaxis]
    if values.ndim == 3 and values.shape[0] in _CHANNELS and (from_tensor or values.shape[2] not in _CHANNELS):
        values = values.transpose(1, 2, 0)
    if values.ndim != 3 or values.shape[2] not in _CHANNELS or 0 in values.shape:
        raise DataError(f"{what} should be grey or have 1 or 3 channels, but its shape is {values.shape}")
    if values.dtype.kind == "f":
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise DataError(
                f"{what} should be uint8, or floats from 0 to 1, but goes from {values.min():g} to {values.max():g}; "
                f"leave out the standardisation, which the lab does by itself"
            )
        values = np.rint(255 * values)
    elif values.dtype.kind not in "iu" or values.min() < 0 or values.max() > 255:
        raise DataError(f"{what} should be uint8, or floats from 0 to 1, but is {values.dtype}")
    return values.astype(np.uint8)


def _labels(labels: Any, what: str) -> Int64Array:
    values = labels.detach().cpu().numpy() if hasattr(labels, "detach") else np.asarray(labels)
    return whole_labels(values, f"{what}: the labels")


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, Sequence)


def _coloured(images: UInt8Array) -> UInt8Array:
    return images if images.shape[3] == 3 else np.repeat(images, 3, axis=3)
