"""Checks of the arguments of the theory, and the types of its results."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replenish import checks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_SIZE = 2**53  # up to here a float holds every integer


def sizes(num_samples: int, batch_size: int) -> tuple[int, int]:
    """Return N and B, checked."""
    n = checks.integer("num_samples", num_samples, minimum=1, maximum=MAX_SIZE)
    return n, checks.integer("batch_size", batch_size, minimum=1, maximum=MAX_SIZE)


def dataset(num_samples: int, batch_size: int) -> tuple[int, int]:
    """Return N and B, checked, of batches without repetition: B <= N."""
    n, b = sizes(num_samples, batch_size)
    if b > n:
        raise ValueError(f"batch_size should be at most num_samples = {n}, but got {b}: take a smaller batch")
    return n, b


def integers(name: str, value: ArrayLike, minimum: int, maximum: int) -> Integers:
    """Return one integer or an array of them as an array, checked."""
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        return np.array(checks.integer(name, value, minimum=minimum, maximum=maximum), dtype=np.int64)
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} should hold integers, but got an array of {array.dtype}: convert it to int64")
    for extreme in [array.min(), array.max()] if array.size else []:
        checks.integer(f"each {name}", extreme, minimum=minimum, maximum=maximum)
    return array.astype(np.int64)
