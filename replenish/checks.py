"""Checks of arguments. An error is one sentence: the argument's name, the value received, what to do."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

# A step becomes part of a 64-bit key; 2**62 leaves room for `step + 1`.
MAX_STEP = 2**62
# Seeds must fit a signed 64-bit integer, so that they survive JSON readers and torch tensors.
MAX_SEED = 2**63 - 1
# A float holds every integer up to here.
MAX_SIZE = 2**53

Floats = npt.NDArray[np.float64]


def integer(name: str, value: object, *, minimum: int, maximum: int | None = None) -> int:
    """Return `value`, a Python or numpy integer from `minimum` to `maximum`, as a plain int, or raise.

    Bools and floats with an integral value are rejected: both are usually mistakes.
    """
    if type(value) is not int:
        # torch's bools, numpy's bools in some versions and arrays of one entry have __index__ too.
        is_bool = isinstance(value, bool) or "bool" in str(getattr(value, "dtype", ""))
        try:
            if is_bool or getattr(value, "ndim", 0) != 0:
                raise TypeError
            value = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"{name} should be an int, but got {value!r} of type {type(value).__name__}") from None
    if value < minimum:
        raise ValueError(f"{name} should be at least {minimum}, but got {value}")
    if maximum is not None and value > maximum:
        raise ValueError(f"{name} should be at most {maximum}, but got {value}")
    return value


def boolean(name: str, value: object) -> bool:
    """Return `value` if it is a bool, or raise."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be True or False, but got {value!r} of type {type(value).__name__}")
    return value


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`, or raise."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} should be one of {', '.join(choices)}, but got {value!r}")
    return value


def array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `value` as an array, or raise for lists of unequal lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} should be an array or a list of numbers, but got a {type(value).__name__} whose entries have "
            f"unequal lengths"
        ) from None


def one_per_sample(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[Any]:
    """Return `values` as an array with one entry per sample, or raise."""
    found = array(name, values)
    if found.shape != (num_samples,):
        raise ValueError(
            f"{name} should have one entry for each of the {num_samples} samples, but got an array of shape "
            f"{found.shape}"
        )
    return found


def whole_numbers(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[np.int64]:
    """Return `values`, one non-negative integer per sample, as a read-only int64 copy, or raise."""
    found = one_per_sample(name, values, num_samples)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} should be integers, but got an array of dtype {found.dtype}")
    for extreme in (int(found.min()), int(found.max())):
        integer(f"an entry of {name}", extreme, minimum=0, maximum=2**62)
    return read_only(found.astype(np.int64))


def weights(name: str, values: npt.ArrayLike, num_samples: int) -> npt.NDArray[np.float64]:
    """Return `values`, one weight per sample, as a read-only float64 copy; see `check_weights`."""
    found = one_per_sample(name, values, num_samples)
    check_weights(name, found)
    return read_only(found.astype(np.float64))


def check_weights(name: str, values: npt.NDArray[Any]) -> None:
    """Raise unless the entries can be weights: real, finite, not negative and not all zero."""
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name} should be real numbers, but got an array of dtype {values.dtype}")
    if not np.isfinite(values).all() or (values < 0).any():
        index = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
        raise ValueError(f"{name} should be finite and not negative, but got {values[index]} at {index}")
    if not values.any():
        raise ValueError(f"{name} should not all be zero: at least one needs to be positive")


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make the array read-only, and return it."""
    array.flags.writeable = False
    return array


def seed(value: object) -> int:
    """Return a seed in [0, 2**63), or raise."""
    return integer("seed", value, minimum=0, maximum=MAX_SEED)


def step(value: object, name: str = "step") -> int:
    """Return a step in [0, 2**62], or raise."""
    return integer(name, value, minimum=0, maximum=MAX_STEP)


def sizes(num_samples: int, batch_size: int) -> tuple[int, int]:
    """Return N and B, at least 1 each, or raise."""
    n = integer("num_samples", num_samples, minimum=1, maximum=MAX_SIZE)
    return n, integer("batch_size", batch_size, minimum=1, maximum=MAX_SIZE)


def dataset(num_samples: int, batch_size: int) -> tuple[int, int]:
    """Return N and B with B <= N, for batches without repetition, or raise."""
    n, b = sizes(num_samples, batch_size)
    if b > n:
        raise ValueError(f"batch_size should be at most num_samples = {n}, but got {b}: take a smaller batch")
    return n, b


def integers(name: str, value: npt.ArrayLike, minimum: int, maximum: int) -> npt.NDArray[np.int64]:
    """Return an integer, or several, from `minimum` to `maximum` as an int64 array, or raise."""
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        return np.array(integer(name, value, minimum=minimum, maximum=maximum), dtype=np.int64)
    found = array(name, value)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} should hold integers, but got an array of {found.dtype}: convert it to int64")
    for extreme in [found.min(), found.max()] if found.size else []:
        integer(f"each {name}", extreme, minimum=minimum, maximum=maximum)
    return found.astype(np.int64)


def real(name: str, value: object, *, maximum: float = math.inf, positive: bool = False) -> float:
    """Return a finite real number from 0 (above 0 if `positive`) to `maximum` as a float, or raise."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} should be a real number, but got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int larger than every float
        number = math.inf
    if not 0 <= number <= maximum or math.isinf(number) or (positive and number == 0):
        at_least = "at least 0 and finite" if math.isinf(maximum) else f"between 0 and {maximum}"
        above = "positive and finite" if math.isinf(maximum) else f"above 0 and at most {maximum}"
        wanted = above if positive else at_least
        raise ValueError(f"{name} should be {wanted}, but got {value if math.isfinite(number) else number}")
    return number


def reals(name: str, value: npt.ArrayLike, *, maximum: float = math.inf, positive: bool = False) -> Floats:
    """Return a real number or an array of real numbers as an array, checked as `real` does."""
    if not isinstance(value, (np.ndarray, list, tuple, range)):
        return np.array(real(name, value, maximum=maximum, positive=positive))
    found = np.asarray(value)
    if found.size and found.dtype.kind not in "iuf":
        raise TypeError(f"{name} should hold real numbers, but got an array of {found.dtype}")
    found = found.astype(np.float64)
    for extreme in [found.min(), found.max()] if found.size else []:  # if there is a nan, it is both
        real(f"each {name}" if found.ndim else name, extreme, maximum=maximum, positive=positive)
    return found
