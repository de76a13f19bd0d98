"""Where the marks of an axis are, and where a value lies on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, drawn from `start` to `stop`: linear, or by the logarithm of values above 0.

    Example:
        >>> Axis(0, 10, start=100, stop=0).at(2.5)
        75.0
        >>> Axis(0.1, 10, start=0, stop=100, log=True).at(1)
        50.0
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value is drawn."""
        part = (value - self.low) / (self.high - self.low)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.stop - self.start)


def round_step(span: float, parts: int) -> float:
    """Return the round number (1, 2 or 5 times a power of ten) that divides a span into at most so many parts.

    Example:
        >>> round_step(200, 5), round_step(0.7, 5)
        (50.0, 0.2)
    """
    raw = span / parts
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        if factor * power >= raw * (1 - 1e-9):
            return float(f"{factor * power:.12g}")
    raise AssertionError(raw)


def round_reach(values: Iterable[float]) -> float:
    """Return how far an axis goes to either side of zero that all values can be drawn on.

    Example:
        >>> round_reach([-0.4, 1.3])
        1.5
    """
    farthest = max(map(abs, values), default=0.0) or 1.0
    step = round_step(2 * farthest, 6)
    return math.ceil(farthest / step - 1e-9) * step


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Return round values within [low, high], at most about `most`.

    Example:
        >>> ticks(0, 37.2, 5), ticks(1, 3, 6, whole=True)
        ([0.0, 10.0, 20.0, 30.0], [1.0, 2.0, 3.0])
    """
    step = round_step(high - low, most)
    if whole:
        step = max(1.0, round(step))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values within [low, high] for a logarithmic axis: powers of ten, with 2 and 5 between few of them.

    Example:
        >>> log_ticks(0.08, 12), log_ticks(0.5, 4)
        ([0.1, 1.0, 10.0], [0.5, 1.0, 2.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1,) if high > 30 * low else (1, 2, 5)
    values = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in values if low <= value <= high]


def tick_label(value: float) -> str:
    """Return a tick's text: 0.5, 10, 2,000."""
    return f"{value:,.6g}"
