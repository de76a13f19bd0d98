"""Arrays with an entry for each sample, which some orders are given: checked, kept, and named by their SHA-256."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks


def one_per_sample(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[Any]:
    """Return `values` as an array with one number for each sample, or raise."""
    array = checks.array(name, values)
    if array.shape != (num_samples,):
        raise ValueError(
            f"{name} should have one entry for each of the {num_samples} samples, but got an array of shape "
            f"{array.shape}"
        )
    return array


def whole_numbers(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[np.int64]:
    """Return `values` as 64-bit integers, one per sample and none negative, in a copy that is read-only."""
    array = one_per_sample(name, values, num_samples)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} should be integers, but got an array of dtype {array.dtype}")
    for extreme in (int(array.min()), int(array.max())):
        checks.integer(f"an entry of {name}", extreme, minimum=0, maximum=2**62)
    return kept(array.astype(np.int64))


def weights(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[np.float64]:
    """Return `values` as floats, one for each sample: finite, none negative, not all zero."""
    array = one_per_sample(name, values, num_samples)
    check_weights(name, array)
    return kept(array.astype(np.float64))


def check_weights(name: str, array: npt.NDArray[Any]) -> None:
    """Raise unless the entries can be weights: real and finite, none negative, not all zero."""
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} should be real numbers, but got an array of dtype {array.dtype}")
    if not np.isfinite(array).all() or (array < 0).any():
        index = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0)))[0])
        raise ValueError(f"{name} should be finite and not negative, but got {array[index]} at {index}")
    if not array.any():
        raise ValueError(f"{name} should not all be zero: at least one needs to be positive")


def digest(array: npt.NDArray[Any]) -> str:
    """Return what stands in a config for an array: the SHA-256 of its entries in 8 bytes each, the low byte first."""
    return "sha256:" + hashlib.sha256(array.astype("<f8" if array.dtype.kind == "f" else "<i8").tobytes()).hexdigest()


def kept(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array that nobody changes any more."""
    array.flags.writeable = False
    return array
