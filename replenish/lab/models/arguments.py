"""Checks of the networks' arguments, in addition to `replenish.checks`."""

from __future__ import annotations

from replenish import checks


def shape(in_channels: object, num_classes: object) -> tuple[int, int]:
    """Return the two arguments that every network takes, or raise."""
    return (
        checks.integer("in_channels", in_channels, minimum=1),
        checks.integer("num_classes", num_classes, minimum=2),
    )


def fraction(name: str, value: object, *, above: float | None = None, below: float | None = None) -> float:
    """Return `value` as a float in [0, 1], and above and below these limits if they are given, or raise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} should be a number, but got {value!r} of type {type(value).__name__}")
    low = f"[{0.0}" if above is None else f"({above}"
    high = f"{1.0}]" if below is None else f"{below})"
    # Written so that a NaN fails every comparison, and so is refused.
    inside = 0.0 <= value <= 1.0
    if not inside or (above is not None and value <= above) or (below is not None and value >= below):
        raise ValueError(f"{name} should be in {low}, {high}, but got {value!r}")
    return float(value)


def units_per_stage(depth: object, *, layers: int, outside: int) -> int:
    """Return n of `depth = layers * n + outside`, or raise, naming the nearest depths that are possible.

    The depth is the number of layers with weights, as the architectures' papers count them; one more unit in every
    stage adds `layers`.
    """
    depth = checks.integer("depth", depth, minimum=layers + outside)
    units, rest = divmod(depth - outside, layers)
    if rest:
        nearest = f"{depth - rest} or {depth - rest + layers}"
        raise ValueError(f"depth should be {layers}n + {outside} (nearest: {nearest}), but got {depth}")
    return units
