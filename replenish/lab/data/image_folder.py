"""Image folders: `train/<class>/*.png` and `test/<class>/*.png`, or only `<class>/*.png`."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array
from replenish.lab.data.images import stack
from replenish.lab.data.smaller_dataset import held_out

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
# Images that are refused. If they were skipped, the user would train on a part of the data without noticing.
OTHER_IMAGES = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".jxl", ".ppm", ".pgm", ".tga", ".ico", ".svg")
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
# Pillow's own limit. An image takes up to 8 bytes per pixel while Pillow rotates it: 0.7 GB.
MAX_PIXELS = 89_478_485
TEST_FOLDERS = ("test", "val", "valid", "validation")


def load_folder(path: Path, image_size: tuple[int, int] | None, seed: int) -> Dataset:
    """Read a folder of images, one subfolder per class, with classes and files sorted by name.

    If there are subfolders `train` and `test` (or, without `test`, `val`), they are the splits, and must have the same
    classes. Otherwise a fifth of every class is held out for testing, chosen by `seed`. Images have one channel if all
    are grey and three otherwise. Transparency is dropped, and the orientation in the EXIF data is applied. Images are
    resized to `image_size` by area average; without it, all must have one size.
    """
    splits = _splits(path)
    if splits is None:
        files, labels, class_names = _listing(path)
        test = held_out(labels, len(class_names), seed, path.name)
        train_files, test_files = ([files[index] for index in np.flatnonzero(mask)] for mask in (~test, test))
        train_labels, test_labels = labels[~test], labels[test]
    else:
        train_files, train_labels, class_names = _listing(splits[0])
        test_files, test_labels, test_names = _listing(splits[1])
        if odd := sorted(set(class_names) ^ set(test_names)):
            there, missing = splits if odd[0] in class_names else reversed(splits)
            raise DataError(f"{path}: class {odd[0]!r} is in {there.name} but not in {missing.name}")
    # Both splits are read as one list, so that they have the same size and number of channels.
    files = train_files + test_files
    with warnings.catch_warnings():
        # Pillow warns of parts that are not needed, such as truncated EXIF data. The filter is set here and not for
        # each image, since all threads share it.
        warnings.simplefilter("ignore")
        images = stack(
            len(files),
            lambda index: _pixels(files[index]),
            image_size,
            lambda index: files[index].name,
            str(path),
            workers=os.cpu_count() or 1,
        )
    count = len(train_files)
    # Relative to `path`; bytes that are not UTF-8 are escaped.
    found = (file.relative_to(path).as_posix() for file in train_files)
    names = np.array([name.encode("utf-8", "backslashreplace").decode() for name in found])
    return Dataset(images[:count], train_labels, images[count:], test_labels, class_names, path.name, train_files=names)


def _splits(path: Path) -> tuple[Path, Path] | None:
    """Return the folders of the training and the test split, in any capitalisation, or None if there are no splits."""
    folders = {folder.name.lower(): folder for folder in _folders(path)}
    train = folders.get("train")
    test = next((folders[name] for name in TEST_FOLDERS if name in folders), None)
    if train is None and (test is None or "test" not in folders):
        return None
    if train is None or test is None:
        there, missing = (train, "test") if test is None else (test, "train")
        raise DataError(f"{path} has a folder {there.name if there else ''!r} but no folder {missing!r}")
    if left := sorted(folder.name for folder in folders.values() if folder not in (train, test)):
        warnings.warn(
            f"{path}: {', '.join(left)} left out; {train.name} is for training and {test.name} for testing",
            stacklevel=2,
        )
    return train, test


def _folders(path: Path) -> list[Path]:
    """Return the folders in the order of their names, without hidden ones and the one that macOS adds to archives."""
    return sorted(
        entry
        for entry in path.iterdir()
        if entry.is_dir() and not entry.name.startswith(".") and entry.name != "__MACOSX"
    )


def _listing(path: Path) -> tuple[list[Path], Int64Array, tuple[str, ...]]:
    """Return the image files under `path`, their labels and the names of the classes."""
    folders = _folders(path)
    if not folders:
        raise DataError(f"{path} has no folders of images, one for each class")
    files: list[Path] = []
    labels: list[int] = []
    for label, folder in enumerate(folders):
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        images = [entry for entry in entries if entry.suffix.lower() in SUFFIXES]
        if other := next((entry for entry in entries if entry.suffix.lower() in OTHER_IMAGES), None):
            raise DataError(f"{other} is an image of a kind that is not read; give {', '.join(SUFFIXES)}")
        if not images:
            raise DataError(f"{folder} has no {', '.join(SUFFIXES)} images; every class needs at least one")
        files += images
        labels += [label] * len(images)
    return files, np.array(labels, dtype=np.int64), tuple(folder.name for folder in folders)


def mode_of(image: Any, what: str) -> str:
    """Return the mode to which one of Pillow's images is converted: 8 bits of grey or colour per channel."""
    # Pillow would cut 16 bits of colour to the upper 8, and clip 16 bits of grey.
    if image.mode not in GREY_MODES + COLOUR_MODES or ";16" in str(getattr(image, "tile", "")):
        raise DataError(f"{what} has more than 8 bits a channel ({image.mode!r}); give images of 8 bits")
    return "L" if image.mode in GREY_MODES else "RGB"


def _pixels(file: Path) -> UInt8Array:
    """Return one image as (height, width, 1 or 3)."""
    # Imported here, since only image files need Pillow.
    from PIL import Image, ImageOps

    try:
        with Image.open(file, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise DataError(f"{file} has {image.width} x {image.height} pixels; reduce it first")
            mode = mode_of(image, str(file))
            if (frames := getattr(image, "n_frames", 1)) > 1:
                raise DataError(f"{file} has {frames} frames; give images of one frame")
            ImageOps.exif_transpose(image, in_place=True)
            return np.asarray(image.convert(mode)).reshape(image.height, image.width, len(mode))
    except DataError:
        raise
    except Exception as error:
        # Damaged images raise many kinds of exceptions, most of which do not name the file.
        raise DataError(f"{file} is not a readable image ({type(error).__name__})") from None
