"""Checks of arguments, one sentence each: the argument's name, the value received, what to do."""

from __future__ import annotations

import operator

# Steps are keyed into a 64-bit word and multiplied as Python ints; 2**62 leaves room for `step + 1`.
MAX_STEP = 2**62
# Seeds must fit a signed 64-bit integer, so that they survive JSON readers and torch tensors.
MAX_SEED = 2**63 - 1


def integer(name: str, value: object, *, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as a plain int, or raise.

    A bool is no int here, nor is a float with an integral value: both are usually mistakes.

    Args:
        name: The argument's name, for the message.
        value: What the caller gave; a Python or numpy integer is accepted.
        minimum: The smallest value allowed.
        maximum: The largest value allowed, or None for no limit.
    """
    if type(value) is not int:
        # numpy's bools have __index__ in some versions; Python's bool is an int: neither is meant.
        is_integer = hasattr(value, "__index__") and type(value).__name__ not in ("bool", "bool_")
        if not is_integer or getattr(value, "ndim", 0) != 0:
            raise TypeError(f"{name} should be an int, but got {value!r} of type {type(value).__name__}")
        value = operator.index(value)  # type: ignore[arg-type]
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


def seed(value: object) -> int:
    """Return a seed in [0, 2**63), or raise."""
    return integer("seed", value, minimum=0, maximum=MAX_SEED)


def step(value: object, name: str = "step") -> int:
    """Return a step in [0, 2**62], or raise."""
    return integer(name, value, minimum=0, maximum=MAX_STEP)
