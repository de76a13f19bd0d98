"""Many images stacked into one array: brought to one size by several workers, in memory or, if large, on the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from replenish.lab.data.area_average import area_average
from replenish.lab.data.dataset import DataError, UInt8Array

#: Images that together have more bytes than this are kept in a memory-mapped file.
IN_MEMORY = 1 << 30
#: How many images are decoded ahead of the one that is stacked next; this bounds the memory.
_AHEAD = 256


def is_large(images: UInt8Array) -> bool:
    """Tell whether images are too many to have a copy of them in memory."""
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
    """Return images as one array: one channel if all are grey, three otherwise.

    `decode` returns one, as (height, width, 1 or 3), in one of `workers` threads: Pillow and numpy let others work
    meanwhile. It is brought to `image_size` by area average; without that all must have one size. In messages `name_of`
    says what an image is called, and `where` what they are together.

    Raises:
        DataError: The images differ in size.
    """

    def fitting(index: int) -> UInt8Array:
        image = decode(index)
        return image if image_size is None else area_average(image[np.newaxis], *image_size)[0]

    stacked: UInt8Array | None = None
    for index, image in enumerate(_in_turn(fitting, count, workers)):
        if stacked is None:
            stacked = _room((count, *image.shape))
        elif image.shape[:2] != stacked.shape[1:3]:
            (height, width), (first_height, first_width) = image.shape[:2], stacked.shape[1:3]
            raise DataError(
                f"{where}: {name_of(index)} is {height} x {width} pixels but {name_of(0)} is "
                f"{first_height} x {first_width}; give an image size to bring all images to one"
            )
        elif image.shape[2] > stacked.shape[3]:  # the first in colour: those before become grey in three channels
            grey, stacked = stacked, _room((*stacked.shape[:3], image.shape[2]))
            for start in range(0, index, _AHEAD):
                stacked[start : min(start + _AHEAD, index)] = grey[start : min(start + _AHEAD, index)]
        stacked[index] = image
    assert stacked is not None
    return stacked


def _in_turn(decode: Callable[[int], UInt8Array], count: int, workers: int) -> Iterator[UInt8Array]:
    if workers == 1:
        yield from map(decode, range(count))
        return
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, count, _AHEAD):
            yield from pool.map(decode, range(start, min(start + _AHEAD, count)))


def _room(shape: tuple[int, ...]) -> UInt8Array:
    """Return an array to be filled: of a file without a name, which is gone with it, if it is large."""
    if int(np.prod(shape)) <= IN_MEMORY:
        return np.empty(shape, dtype=np.uint8)
    folder = scratch_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:  # the mapping keeps it
        return np.memmap(file, np.uint8, "w+", shape=shape)
