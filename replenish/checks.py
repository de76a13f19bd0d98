"""Checks of arguments, one sentence each: the argument's name, the value received, what to do."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

# Steps are keyed into a 64-bit word and multiplied as Python ints; 2**62 leaves room for `step + 1`.
MAX_STEP = 2**62
# Seeds must fit a signed 64-bit integer, so that they survive JSON readers and torch tensors.
MAX_SEED = 2**63 - 1


def integer(name: str, value: object, *, minimum: int, maximum: int | None = None) -> int:
    """Return `value`, a Python or numpy integer from `minimum` to `maximum`, as a plain int, or raise.

    A bool is no int here, nor is a float with an integral value: both are usually mistakes.
    """
    if type(value) is not int:
        # Some bools have __index__, those of numpy in some versions and those of torch; an array of one is no number.
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
    """Return `value` if it is one of the names that there are, or raise."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} should be one of {', '.join(choices)}, but got {value!r}")
    return value


def array(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `value` as an array, or raise where numpy makes none of it: lists of unequal lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} should be an array or a list of numbers, but got a {type(value).__name__} whose entries have "
            f"unequal lengths"
        ) from None


def seed(value: object) -> int:
    """Return a seed in [0, 2**63), or raise."""
    return integer("seed", value, minimum=0, maximum=MAX_SEED)


def step(value: object, name: str = "step") -> int:
    """Return a step in [0, 2**62], or raise."""
    return integer(name, value, minimum=0, maximum=MAX_STEP)
