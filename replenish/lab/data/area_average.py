"""Images made smaller (or larger) by area average, exactly."""

from __future__ import annotations

import numpy as np

from replenish.lab.data.dataset import Float64Array, UInt8Array

# Images are resized in pieces of this many values: float64 copies of a whole dataset would be large.
VALUES_PER_PIECE = 1 << 22


def area_average(images: UInt8Array, height: int, width: int) -> UInt8Array:
    """Resize uint8 images to `height` x `width`; every new pixel is the mean of the area that it covers.

    A new pixel that covers parts of old pixels weighs them by the share that it covers, whatever the ratio
    of the sizes. All sums are of integers below 2**53, held in float64, so they are exact and the
    result (rounded to the nearest grey level, halves up) is the same on every machine.

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
    # A single image may be larger than a piece: then it goes in bands of rows.
    band = max(1, min(old_height, VALUES_PER_PIECE // (old_width * channels)))
    for start in range(0, count, piece):
        some = images[start : start + piece].reshape(-1, old_height, old_width * channels)
        # (images, height, old_width * channels), then columns: two matrix products.
        rows = np.zeros((len(some), height, old_width * channels))
        for top in range(0, old_height, band):
            rows += down[:, top : top + band] @ some[:, top : top + band].astype(np.float64)
        sums = (across @ rows.reshape(len(some), height, old_width, channels)).astype(np.int64)
        resized[start : start + piece] = (2 * sums + area) // (2 * area)
    return resized


def _overlaps(old: int, new: int) -> Float64Array:
    """Return the (new, old) overlaps, in units in which an old pixel is `new` long and a new one `old`."""
    new_edges, old_edges = np.arange(new + 1) * old, np.arange(old + 1) * new
    ends = np.minimum(new_edges[1:, np.newaxis], old_edges[1:])
    starts = np.maximum(new_edges[:-1, np.newaxis], old_edges[:-1])
    overlaps: Float64Array = np.maximum(ends - starts, 0).astype(np.float64)
    return overlaps
