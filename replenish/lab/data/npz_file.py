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
from replenish.lab.data.smaller_dataset import held_out

SPLIT_KEYS = ("train_images", "train_labels", "test_images", "test_labels")
#: Keras's names, and the names of a validation split, which becomes the test split if there is none.
KERAS_KEYS = ("x_train", "y_train", "x_test", "y_test")
VALIDATION_KEYS = ("val_images", "val_labels")
Arrays = dict[str, npt.NDArray[Any]]


def load_npz(path: Path, seed: int) -> Dataset:
    """Read a dataset from an `.npz`, without unpickling anything.

    The keys are one of these sets:

    - `train_images`, `train_labels`, `test_images`, `test_labels`, as in MedMNIST. Its `val_images` are the test images
      if there are no others; otherwise they are ignored with a warning.
    - Keras's `x_train`, `y_train`, `x_test`, `y_test`.
    - `images`, `labels` and `split` (0 for training, 1 for testing). Without `split`, a fifth of every class is held
      out for testing, chosen by `seed`.

    Images are uint8 of (images, height, width, channels), or without the last axis for one channel. Labels are integers
    from 0, of (images,) or (images, 1). `class_names`, an array of strings, is optional.
    """
    arrays = _read(path)
    for key, other in zip(SPLIT_KEYS, KERAS_KEYS, strict=True):
        if key not in arrays and other in arrays:
            arrays[key] = arrays[other]
    if "test_images" in arrays and "val_images" in arrays:
        warnings.warn(f"{path}: val_images left out; test_images are for testing", stacklevel=2)
    elif "val_images" in arrays:
        arrays |= {key.replace("val", "test"): arrays[key] for key in VALIDATION_KEYS if key in arrays}
    keys = ("images", "labels") if "images" in arrays else SPLIT_KEYS
    if missing := [key for key in keys if key not in arrays]:
        raise DataError(
            f"{path} has no array {missing[0]!r}; it should hold {', '.join(SPLIT_KEYS)}, or images, labels"
        )
    images = [_images(arrays[key], f"{path}: {key}") for key in keys[::2]]
    labels = [whole_labels(arrays[key], f"{path}: {key}") for key in keys[1::2]]
    class_names = _class_names(arrays.get("class_names"), np.concatenate(labels), path)
    if "images" in arrays:
        if len(images[0]) != len(labels[0]):
            raise DataError(f"{path}: {len(images[0])} images have {len(labels[0])} labels")
        test = _test_images(arrays, labels[0], class_names, path, seed)
        images, labels = [images[0][~test], images[0][test]], [labels[0][~test], labels[0][test]]
    return Dataset(images[0], labels[0], images[1], labels[1], class_names, path.name)


def _read(path: Path) -> Arrays:
    known = (*SPLIT_KEYS, *KERAS_KEYS, *VALIDATION_KEYS, "images", "labels", "split", "class_names")
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an .npz file, or is cut short")
    try:
        # It is numpy's default today, but here it keeps a file from running code.
        with np.load(path, allow_pickle=False) as archive:
            found = {key: archive[key] for key in known if key in archive.files}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short ({error})") from None
    except (ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError) as error:
        reason = "it holds Python objects" if "allow_pickle" in str(error) else type(error).__name__
        raise DataError(f"{path} is not a readable .npz file of plain arrays ({reason})") from None
    for key, array in found.items():
        if not isinstance(array, np.ndarray):  # numpy returns other files in an archive as bytes
            raise DataError(f"{path}: {key} is not an array")
    return found


def _test_images(
    arrays: Arrays, labels: Int64Array, class_names: tuple[str, ...], path: Path, seed: int
) -> npt.NDArray[np.bool_]:
    """Return the mask of the test images of `images`."""
    if "split" not in arrays:
        return held_out(labels, len(class_names), seed, path.name)
    split = whole_labels(arrays["split"], f"{path}: split")
    if len(split) != len(labels) or not np.isin(split, (0, 1)).all():
        raise DataError(f"{path}: split should hold 0 (training) or 1 (testing) for every image")
    return split == 1


def _images(images: npt.NDArray[Any], what: str) -> UInt8Array:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape:
        raise DataError(
            f"{what} should be uint8 of (images, height, width, channels), but is {images.dtype} of {images.shape}"
        )
    return images if images.ndim == 4 else images[..., np.newaxis]


def _class_names(names: npt.NDArray[Any] | None, labels: Int64Array, path: Path) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(int(labels.max()) + 1)))
    if names.dtype.kind != "U" or names.ndim != 1:
        raise DataError(f"{path}: class_names should be one axis of strings, but is {names.dtype}")
    return tuple(map(str, names))
