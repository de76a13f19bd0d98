"""Many images as one array, resized by exact area average; large arrays are on the disk instead of in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from replenish.lab.data.dataset import DataError, Float64Array, UInt8Array

#: Images of more bytes than this, in total, are kept in a memory-mapped file.
IN_MEMORY = 1 << 30
#: How many images are decoded ahead of the next one to be stacked; this bounds the memory.
_AHEAD = 256
# Images are resized in pieces of this many values, since a float64 copy of a whole dataset would be large.
VALUES_PER_PIECE = 1 << 22


def area_average(images: UInt8Array, height: int, width: int) -> UInt8Array:
    """Resize uint8 images to `height` x `width`; every new pixel is the mean of the area that it covers.

    The sizes can have any ratio: an old pixel that is partly covered has a smaller weight. All sums are of integers
    below 2**53 in float64, so they are exact, and the result (rounded to the nearest grey level, halves up) is the same
    on every machine.

    Example:
        >>> import numpy as np
        >>> column = np.array([0, 90, 30], dtype=np.uint8).reshape(1, 3, 1, 1)
        >>> area_average(column, 2, 1).ravel().tolist()
        [30, 50]
    """
    count, old_height, old_width, channels = images.shape
    if (old_height, old_width) == (height, width):
        return images
    down, across = _overlaps(old_height, height), _overlaps(old_width, width)
    area = old_height * old_width
    resized = np.empty((count, height, width, channels), dtype=np.uint8)
    piece = max(1, VALUES_PER_PIECE // (old_height * old_width * channels))
    # A single image that is larger than a piece is resized in bands of rows.
    band = max(1, min(old_height, VALUES_PER_PIECE // (old_width * channels)))
    for start in range(0, count, piece):
        some = images[start : start + piece].reshape(-1, old_height, old_width * channels)
        # First the rows, (images, height, old_width * channels), then the columns: two matrix products.
        rows = np.zeros((len(some), height, old_width * channels))
        for top in range(0, old_height, band):
            rows += down[:, top : top + band] @ some[:, top : top + band].astype(np.float64)
        sums = (across @ rows.reshape(len(some), height, old_width, channels)).astype(np.int64)
        resized[start : start + piece] = (2 * sums + area) // (2 * area)
    return resized


def _overlaps(old: int, new: int) -> Float64Array:
    """Return how much each new pixel overlaps each old one, as (new, old), if old pixels have the length `new`."""
    new_edges, old_edges = np.arange(new + 1) * old, np.arange(old + 1) * new
    ends = np.minimum(new_edges[1:, np.newaxis], old_edges[1:])
    starts = np.maximum(new_edges[:-1, np.newaxis], old_edges[:-1])
    overlaps: Float64Array = np.maximum(ends - starts, 0).astype(np.float64)
    return overlaps


def is_large(images: UInt8Array) -> bool:
    """Return whether images are too large to be copied in memory."""
    return images.nbytes > IN_MEMORY


def scratch_folder() -> Path:
    """Return the folder for decoded data, which can be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "replenish" / "decoded"


def stack(
    count: int,
    decode: Callable[[int], UInt8Array],
    image_size: tuple[int, int] | None,
    name_of: Callable[[int], str],
    where: str,
    *,
    workers: int = 1,
) -> UInt8Array:
    """Return images as one array, with one channel if all are grey and three otherwise.

    `decode` returns one image as (height, width, 1 or 3). It runs in `workers` threads, since Pillow and numpy release
    the interpreter's lock. Each image is resized to `image_size` by area average; without it, all must have one size.
    `name_of` names an image in messages, and `where` names all of them.

    Raises:
        DataError: The images differ in size.
    """

    def fitting(index: int) -> UInt8Array:
        image = decode(index)
        return image if image_size is None else area_average(image[np.newaxis], *image_size)[0]

    stacked: UInt8Array | None = None
    for index, image in enumerate(_decoded(fitting, count, workers)):
        if stacked is None:
            stacked = _empty((count, *image.shape))
        elif image.shape[:2] != stacked.shape[1:3]:
            (height, width), (first_height, first_width) = image.shape[:2], stacked.shape[1:3]
            raise DataError(
                f"{where}: {name_of(index)} is {height} x {width} pixels but {name_of(0)} is "
                f"{first_height} x {first_width}; give an image size to bring all images to one"
            )
        elif image.shape[2] > stacked.shape[3]:  # the first colour image: the grey ones before it get three channels
            grey, stacked = stacked, _empty((*stacked.shape[:3], image.shape[2]))
            for start in range(0, index, _AHEAD):
                stacked[start : min(start + _AHEAD, index)] = grey[start : min(start + _AHEAD, index)]
        stacked[index] = image
    assert stacked is not None
    return stacked


def _decoded(decode: Callable[[int], UInt8Array], count: int, workers: int) -> Iterator[UInt8Array]:
    if workers == 1:
        yield from map(decode, range(count))
        return
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, count, _AHEAD):
            yield from pool.map(decode, range(start, min(start + _AHEAD, count)))


def _empty(shape: tuple[int, ...]) -> UInt8Array:
    """Return an array to fill. A large one is mapped to a file without a name, which is deleted with the array."""
    if int(np.prod(shape)) <= IN_MEMORY:
        return np.empty(shape, dtype=np.uint8)
    folder = scratch_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:  # the mapping keeps the file
        return np.memmap(file, np.uint8, "w+", shape=shape)
