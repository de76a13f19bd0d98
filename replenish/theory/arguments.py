"""Checks of the arguments of the theory, and the types of its results."""

from __future__ import annotations

import math

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
    array = checks.array(name, value)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} should hold integers, but got an array of {array.dtype}: convert it to int64")
    for extreme in [array.min(), array.max()] if array.size else []:
        checks.integer(f"each {name}", extreme, minimum=minimum, maximum=maximum)
    return array.astype(np.int64)


def real(name: str, value: object, *, most: float = math.inf, positive: bool = False) -> float:
    """Return one real number as a float, checked: finite and at least 0, or above."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} should be a real number, but got {value!r} of type {type(value).__name__}")
    if not 0 <= value <= most or math.isinf(value) or (positive and value == 0):
        wanted = "positive and finite" if positive else f"between 0 and {most}"
        raise ValueError(f"{name} should be {wanted}, but got {value}")
    return float(value)


def reals(name: str, value: ArrayLike, *, most: float = math.inf, positive: bool = False) -> Floats:
    """Return one real number or an array of them as an array, checked as `real` does."""
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        return np.array(real(name, value, most=most, positive=positive))
    array = np.asarray(value)
    if array.size and array.dtype.kind not in "iuf":
        raise TypeError(f"{name} should hold real numbers, but got an array of {array.dtype}")
    array = array.astype(np.float64)
    for extreme in [array.min(), array.max()] if array.size else []:  # nan is both
        real(f"each {name}" if array.ndim else name, extreme, most=most, positive=positive)
    return array
