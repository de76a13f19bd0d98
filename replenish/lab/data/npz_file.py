"""Datasets in a numpy `.npz` file."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array, whole_labels
from replenish.lab.data.image_choice import held_out

SPLIT_KEYS = ("train_images", "train_labels", "test_images", "test_labels")
#: Keras's names, and the names of a validation split, which serves as the test split where there is none.
KERAS_KEYS = ("x_train", "y_train", "x_test", "y_test")
VALIDATION_KEYS = ("val_images", "val_labels")
WHOLE_KEYS = ("images", "labels")


def load_npz(path: Path, seed: int) -> Dataset:
    """Read a dataset from an `.npz`, without unpickling anything.

    The keys are `train_images`, `train_labels`, `test_images`, `test_labels`, as MedMNIST has them (its `val_images`
    are left out, and tested on where there are no test images), or Keras's `x_train`, `y_train`, `x_test`, `y_test`;
    or `images` and `labels` with `split` (0 for training, 1 for testing); or these without `split`, when a fifth of
    every class is held out for testing, chosen by `seed`. Images are uint8, (images, height, width, channels) or
    without the last axis for one channel; labels are integers from 0, (images,) or (images, 1). `class_names`, an array
    of strings, is optional.
    """
    arrays = _read(path)
    for key, other in zip(SPLIT_KEYS, KERAS_KEYS, strict=True):
        if key not in arrays and other in arrays:
            arrays[key] = arrays[other]
    if "test_images" not in arrays and "val_images" in arrays:
        arrays |= {"test_images": arrays["val_images"], "test_labels": arrays.get("val_labels", np.empty(0))}
    elif "val_images" in arrays:
        warnings.warn(f"{path}: val_images left out; test_images are for testing", stacklevel=2)
    if "images" in arrays:
        images, labels = _images(arrays, "images", path), _labels(arrays, "labels", path)
        class_names = _class_names(arrays, labels, path)
        if len(images) != len(labels):
            raise DataError(f"{path}: {len(images)} images have {len(labels)} labels")
        if "split" in arrays:
            split = _labels(arrays, "split", path)
            if len(split) != len(labels) or not np.isin(split, (0, 1)).all():
                raise DataError(f"{path}: split should hold 0 (training) or 1 (testing) for every image")
            test = split == 1
        else:
            test = held_out(labels, len(class_names), seed, path.name)
        return Dataset(images[~test], labels[~test], images[test], labels[test], class_names, path.name)
    if missing := [key for key in SPLIT_KEYS if key not in arrays]:
        raise DataError(
            f"{path} has no array {missing[0]!r}; it should hold {', '.join(SPLIT_KEYS)}, or images, labels"
        )
    train_labels, test_labels = (_labels(arrays, f"{split}_labels", path) for split in ("train", "test"))
    train_images, test_images = (_images(arrays, f"{split}_images", path) for split in ("train", "test"))
    class_names = _class_names(arrays, np.concatenate([train_labels, test_labels]), path)
    return Dataset(train_images, train_labels, test_images, test_labels, class_names, path.name)


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    known = (*SPLIT_KEYS, *KERAS_KEYS, *VALIDATION_KEYS, *WHOLE_KEYS, "split", "class_names")
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is no .npz file, or is cut short")
    try:
        # allow_pickle=False is numpy's default today; here it is what keeps a file from running code.
        with np.load(path, allow_pickle=False) as archive:
            found = {key: archive[key] for key in known if key in archive.files}
    except (ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError) as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else type(error).__name__
        raise DataError(f"{path} is not a readable .npz file of plain arrays ({reason})") from None
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short ({error})") from None
    for key, array in found.items():
        if not isinstance(array, np.ndarray):  # numpy gives the bytes of what is no array
            raise DataError(f"{path}: {key} is no array")
    return found


def _images(arrays: dict[str, npt.NDArray[Any]], key: str, path: Path) -> UInt8Array:
    images = arrays[key]
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape:
        raise DataError(
            f"{path}: {key} should be uint8 of (images, height, width, channels), "
            f"but is {images.dtype} of {images.shape}"
        )
    return images if images.ndim == 4 else images[..., np.newaxis]


def _labels(arrays: dict[str, npt.NDArray[Any]], key: str, path: Path) -> Int64Array:
    labels = arrays.get(key)
    if labels is None:
        raise DataError(f"{path} has no array {key!r}")
    return whole_labels(labels, f"{path}: {key}")


def _class_names(arrays: dict[str, npt.NDArray[Any]], labels: Int64Array, path: Path) -> tuple[str, ...]:
    """Return the names of the classes, one for each label from 0; refuse labels that have none."""
    names = arrays.get("class_names")
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1):
        raise DataError(f"{path}: class_names should be one axis of strings, but is {names.dtype}")
    if labels.min() < 0:
        raise DataError(f"{path}: labels should be the numbers of classes, from 0, but got {labels.min()}")
    # Without names, a stray label of a million would make a million of them; each class has an image.
    count = len(labels) if names is None else len(names)
    if labels.max() >= count:
        of = f"{count} class_names" if names is not None else f"{count} images"
        raise DataError(f"{path}: labels should be the numbers of classes, from 0, but got {labels.max()} with {of}")
    return tuple(str(name) for name in (range(int(labels.max()) + 1) if names is None else names))
