"""A dataset in memory: two splits of uint8 images with integer labels, checked, named and fingerprinted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

UInt8Array = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

# Grey levels are counted in pieces of this many values, to bound the memory.
VALUES_PER_PIECE = 1 << 22

#: The fields of a `Dataset` that are arrays. The last four are optional.
ARRAYS = (
    "train_images",
    "train_labels",
    "test_images",
    "test_labels",
    "held_out_images",
    "held_out_labels",
    "train_subclasses",
    "train_files",
)

# An image with at most this many rows and with more channels probably has its channels first.
MOST_LIKELY_CHANNELS = 4


class DataError(ValueError):
    """Data that are incomplete, altered, hostile or contradictory. The message is one sentence."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images and labels of a training and a test split, as read-only arrays in memory.

    The two splits have the same classes, every class has at least one image in each, and all images have one shape.
    Anything else raises `DataError`. The images are not standardised: `Batches` does that with `mean` and `std`, which
    are computed from the training split.

    Args:
        train_images: uint8 array of (images, height, width, channels).
        train_labels: int64 array of (images,), with values from 0 to `num_classes - 1`.
        test_images: As `train_images`.
        test_labels: As `train_labels`.
        class_names: One name per class; a label is an index into this tuple.
        name: The name of the data in records and messages.
        held_out_images: The training images that `reduce` did not keep, if it was called with `held_out=True`.
        held_out_labels: Their labels.
        train_subclasses: A finer label of each training image, from 0. If given, `reduce` counts images per subclass
            instead of per class.
        train_files: The file of each training image. Reports name the images of a step by their files.

    Example:
        >>> from replenish.lab.data import load
        >>> digits = load("digits")
        >>> digits.train_images.shape, digits.num_classes
        ((1438, 8, 8, 1), 10)
    """

    train_images: UInt8Array
    train_labels: Int64Array
    test_images: UInt8Array
    test_labels: Int64Array
    class_names: tuple[str, ...]
    name: str = "unnamed"
    held_out_images: UInt8Array | None = None
    held_out_labels: Int64Array | None = None
    train_subclasses: Int64Array | None = None
    train_files: npt.NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(self.class_names))
        self._check_class_names(self.class_names)
        for split in ("train", "test", "held_out"):
            self._check_split(split)
        if self.train_files is not None and self.train_files.shape != self.train_labels.shape:
            raise DataError(f"{self.name}: train_files should have a name for each of the training images")
        if self.train_subclasses is not None:
            self._check_subclasses(self.train_subclasses)
        for name in ARRAYS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _read_only(getattr(self, name)))

    def _check_class_names(self, names: tuple[str, ...]) -> None:
        if not names or not all(isinstance(name, str) for name in names):
            raise DataError(f"{self.name}: class_names should be one or more strings, but got {names!r:.80}")
        for name in names:
            try:
                name.encode()
            except UnicodeEncodeError:  # the name of a folder can be any bytes
                raise DataError(f"{self.name}: the class {name!r} has a name that is not UTF-8; rename it") from None
        if len(set(names)) != len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise DataError(f"{self.name}: two classes are both named {repeated!r}")

    def _check_split(self, split: str) -> None:
        images, labels = getattr(self, f"{split}_images"), getattr(self, f"{split}_labels")
        if split == "held_out" and images is None and labels is None:
            return
        _check_images(images, f"{self.name}: {split}_images")
        _check_labels(labels, f"{self.name}: {split}_labels", self.num_classes)
        if len(images) != len(labels):
            raise DataError(f"{self.name}: {len(images)} {split} images have {len(labels)} labels")
        counts = np.bincount(labels, minlength=self.num_classes)
        if split != "held_out" and not counts.all():  # all images of a class may be kept, and none held out
            missing = self.class_names[int(np.argmin(counts))]
            raise DataError(f"{self.name}: class {missing!r} has no image in the {split} split")
        if images.shape[1:] != self.train_images.shape[1:]:
            raise DataError(
                f"{self.name}: training images of {self.train_images.shape[1:]} and {split} images of "
                f"{images.shape[1:]} differ in height, width or channels"
            )

    def _check_subclasses(self, subclasses: Int64Array) -> None:
        what = f"{self.name}: train_subclasses"
        _check_labels(subclasses, what, len(self.train_labels))
        if len(subclasses) != len(self.train_labels):
            raise DataError(f"{what} should have a number for each of the {len(self.train_labels)} training images")
        if len(np.unique(subclasses)) != len(np.unique(np.stack([subclasses, self.train_labels]), axis=1)[0]):
            raise DataError(f"{what} should have every subclass in one class, but one is in several")

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width of every image."""
        return int(self.train_images.shape[1]), int(self.train_images.shape[2])

    @property
    def channels(self) -> int:
        """The number of channels of every image."""
        return int(self.train_images.shape[3])

    @cached_property
    def mean(self) -> Float64Array:
        """Mean of each channel over the training split, on the scale where 255 is 1."""
        return self._moments[0]

    @cached_property
    def std(self) -> Float64Array:
        """Standard deviation of each channel over the training split; 1 where a channel is constant."""
        return self._moments[1]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that training can see: both splits, their shapes, and the class names.

        Held-out images are left out, so a run is the same run whether or not they were loaded.
        """
        digest = hashlib.sha256()
        for name in self.class_names:
            digest.update(f"{len(name.encode())}:{name}".encode())
        for array in (self.train_images, self.train_labels, self.test_images, self.test_labels):
            digest.update(repr(array.shape).encode())
            # An explicit byte order, so that one dataset has one fingerprint on every machine.
            stored = array.astype("<i8", copy=False) if array.dtype == np.int64 else array
            digest.update(np.ascontiguousarray(stored).data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, {self.num_classes} classes, {len(self.train_labels)} training and "
            f"{len(self.test_labels)} test images of {self.train_images.shape[1:]})"
        )

    def describe(self) -> dict[str, int | str | list[int]]:
        """Return the name, the sizes and the fingerprint as plain values, for a record."""
        return {
            "name": self.name,
            "classes": self.num_classes,
            "train_images": len(self.train_labels),
            "test_images": len(self.test_labels),
            "image_size": list(self.image_size),
            "channels": self.channels,
            "fingerprint": self.fingerprint,
        }

    @cached_property
    def _moments(self) -> tuple[Float64Array, Float64Array]:
        # From the counts of the 256 grey levels: sums of integers are exact in any order and in any pieces.
        histogram = np.zeros((self.channels, 256), dtype=np.int64)
        piece = max(1, VALUES_PER_PIECE // int(np.prod(self.train_images.shape[1:])))
        for start in range(0, len(self.train_images), piece):
            for channel in range(self.channels):
                values = self.train_images[start : start + piece, :, :, channel]
                histogram[channel] += np.bincount(values.ravel(), minlength=256)
        levels = np.arange(256)
        count = histogram[0].sum()
        mean = histogram @ levels / count
        variance = (histogram * (levels - mean[:, np.newaxis]) ** 2).sum(axis=1) / count
        std = np.sqrt(variance)
        # A constant channel minus its mean is 0 everywhere; divided by 0 it would be NaN.
        std[std == 0] = 255.0
        return mean / 255, std / 255


def _check_images(value: object, what: str) -> None:
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8:
        raise DataError(f"{what} should be an array of uint8, but got {_kind(value)}")
    if value.ndim != 4 or 0 in value.shape:
        raise DataError(
            f"{what} should have the shape (images, height, width, channels), all above 0, but got {value.shape}"
        )
    if value.shape[3] > MOST_LIKELY_CHANNELS >= value.shape[1]:
        raise DataError(
            f"{what} of {value.shape} seem to have the channels first; give (images, height, width, channels), as "
            f"images.transpose(0, 2, 3, 1) does"
        )


def _check_labels(value: object, what: str, classes: int) -> None:
    if not isinstance(value, np.ndarray) or value.dtype != np.int64:
        raise DataError(f"{what} should be an array of int64, but got {_kind(value)}")
    if value.ndim != 1:
        raise DataError(f"{what} should have one axis, but got the shape {value.shape}")
    outside = value[(value < 0) | (value >= classes)]
    if outside.size:
        raise DataError(f"{what} should be from 0 to {classes - 1}, but got {int(outside[0])}")


def whole_labels(values: npt.NDArray[np.generic], what: str) -> Int64Array:
    """Return labels as int64, one for each image; a second axis of length 1 is removed."""
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind not in "iu" or values.ndim != 1 or not len(values):
        raise DataError(f"{what} should be one axis of integers, but is {values.dtype} of {values.shape}")
    labels = values.astype(np.int64)
    if labels.min() < 0 or labels.max() >= len(labels):  # every class has an image, so there are no more classes
        odd = labels.min() if labels.min() < 0 else labels.max()
        raise DataError(f"{what} should be the numbers of classes, from 0, but got {odd}")
    return labels


def _kind(value: object) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _read_only(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    view = array.view()
    view.setflags(write=False)
    return view
