"""Image folders: `train/<class>/*.png` and `test/<class>/*.png`, or one folder of classes."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from replenish.lab.data.area import area_average
from replenish.lab.data.choice import held_out
from replenish.lab.data.dataset import DataError, Dataset, Int64Array, UInt8Array

SUFFIXES = (".png", ".jpg", ".jpeg")
GREY_MODES = ("1", "L", "LA")
COLOUR_MODES = ("P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")


def load_folder(path: Path, image_size: tuple[int, int] | None, seed: int) -> Dataset:
    """Read a folder of images, one subfolder a class, classes and files in the order of their names.

    With `train` and `test` inside, those are the splits, and must have the same classes; without, a fifth of
    every class is held out for testing, chosen by `seed`. Images become one channel if all are grey
    and three otherwise; transparency is dropped and the orientation that a camera noted is applied.

    Args:
        path: The folder.
        image_size: Height and width to which each image is brought by area average; without it, all
            images must have one size.
        seed: The seed of the split.
    """
    parts = [path / split for split in ("train", "test")]
    if not any(part.is_dir() for part in parts):
        files, labels, class_names = _listing(path)
        test = held_out(labels, len(class_names), seed, path.name)
        images = _read(files, image_size, path)
        return Dataset(images[~test], labels[~test], images[test], labels[test], class_names, path.name)
    for part, other in (parts, reversed(parts)):
        if not part.is_dir():
            raise DataError(f"{path} has a folder {other.name!r} but no folder {part.name!r}")
    train_files, train_labels, class_names = _listing(parts[0])
    test_files, test_labels, test_names = _listing(parts[1])
    if odd := sorted(set(class_names) ^ set(test_names)):
        there, missing = ("train", "test") if odd[0] in class_names else ("test", "train")
        raise DataError(f"{path}: class {odd[0]!r} is in {there} but not in {missing}")
    # Read as one list, so that the two splits agree in size and in the number of channels.
    images = _read(train_files + test_files, image_size, path)
    count = len(train_files)
    return Dataset(images[:count], train_labels, images[count:], test_labels, class_names, path.name)


def _listing(path: Path) -> tuple[list[Path], Int64Array, tuple[str, ...]]:
    """Return the image files under `path`, their labels and the names of the classes."""
    folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not folders:
        raise DataError(f"{path} has no folders of images, one for each class")
    files: list[Path] = []
    labels: list[int] = []
    for label, folder in enumerate(folders):
        images = sorted(
            file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
        )
        if not images:
            raise DataError(f"{folder} has no {', '.join(SUFFIXES)} images: a class may not be empty")
        files += images
        labels += [label] * len(images)
    return files, np.array(labels, dtype=np.int64), tuple(folder.name for folder in folders)


def _read(files: list[Path], image_size: tuple[int, int] | None, path: Path) -> UInt8Array:
    images: list[UInt8Array] = []
    for file in files:
        image = _pixels(file)
        if image_size is not None:
            image = area_average(image[np.newaxis], *image_size)[0]
        elif images and image.shape[:2] != images[0].shape[:2]:
            (height, width), (first_height, first_width) = image.shape[:2], images[0].shape[:2]
            raise DataError(
                f"{path}: {file.name} is {height} x {width} pixels but {files[0].name} is "
                f"{first_height} x {first_width}; give image_size= to bring all images to one size"
            )
        images.append(image)
    if len({image.shape[2] for image in images}) > 1:
        images = [np.broadcast_to(image, (*image.shape[:2], 3)) for image in images]
    return np.stack(images)


def _pixels(file: Path) -> UInt8Array:
    """Return one image as (height, width, 1 or 3)."""
    # Imported here: those who bring no image files need no Pillow.
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            # Pillow warns of an image large enough to exhaust memory; that is an error here.
            warnings.simplefilter("error")
            with Image.open(file, formats=("PNG", "JPEG")) as image:
                mode = image.mode
                if mode not in GREY_MODES + COLOUR_MODES:
                    raise DataError(f"{file} has pixels of mode {mode!r}; give images of 8 bits a channel")
                upright = ImageOps.exif_transpose(image)
                pixels = np.asarray(upright.convert("L" if mode in GREY_MODES else "RGB"))
    except DataError:
        raise
    except Exception as error:
        # Damaged images raise many kinds of exceptions; what the user can act on is which file it is.
        raise DataError(f"{file} is not a readable image ({type(error).__name__})") from None
    return pixels.reshape(*pixels.shape[:2], -1)
