"""The look of each data order: its colour and its mark in every chart, page and plot.

The first six hues differ visibly for any kind of colour blindness (a test simulates them), on a white and on a dark
background. Without colour, the marks distinguish the orders. Two lines of one order differ in their dashes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

#: (on a light background, on a dark background)
HUES = (
    ("#1f56cf", "#6a8dff"),  # blue
    ("#d06a00", "#ef8a1d"),  # orange
    ("#06604b", "#7ff0cc"),  # green
    ("#b5307f", "#f095cf"),  # pink
    ("#2a97bf", "#4fc3f0"),  # cyan
    ("#45400f", "#f0e26a"),  # olive
    ("#6c3b9c", "#b79af5"),  # violet
    ("#a34a44", "#e0776a"),  # red
)
#: The other colours of pages and pictures, on a light and on a dark background.
COLOURS = {
    "ground": ("#f6f5f1", "#12151a"),
    "sheet": ("#ffffff", "#1a1e25"),
    "ink": ("#1d2129", "#e7e9ed"),
    "soft": ("#545b67", "#a7afbb"),
    "hair": ("#dcdad3", "#343b46"),
    "faint": ("#efede7", "#242a33"),
    "accent": ("#1f56cf", "#9db4ff"),
    "draw": ("#b93c08", "#fb923c"),  # what leaves the pool
    "draw-soft": ("#ffedd5", "#43240f"),
    "refill": ("#047857", "#34d399"),  # what comes from the queue
    "refill-soft": ("#d1fae5", "#0d3b2e"),
}
MARKS = ("circle", "square", "diamond", "triangle", "down", "bar")
#: The same in matplotlib's spelling.
MATPLOTLIB_MARKS = ("o", "s", "D", "^", "v", "_")
#: The dashes of the first, second, ... line with the same look, as in SVG's `stroke-dasharray`; "" is a solid line.
DASHES = ("", "7 4", "2 3.5", "10 3 2 3")


@dataclass(frozen=True)
class Look:
    """A hue and a mark, as indices of `HUES` and `MARKS`."""

    hue: int
    mark: int

    @property
    def light(self) -> str:
        """The colour on a light background."""
        return HUES[self.hue][0]


_NAMED = {
    ("srs", "SequencedReplacement"): Look(0, 0),
    ("reshuffling", "RandomReshuffling"): Look(1, 1),
    ("replacement", "BatchedReplacement"): Look(2, 2),
    ("independent", "IndependentDraws"): Look(3, 3),
    ("shuffle-once", "ShuffleOnce"): Look(4, 4),
    ("flip-flop", "FlipFlop"): Look(5, 5),
}
_LOOKS = {name.lower(): look for names, look in _NAMED.items() for name in names}


def look_of(order: str) -> Look:
    """Return the look of an order by its name in the lab or its class's name; an unknown name has a fixed look, too.

    Example:
        >>> look_of("srs") == look_of("SequencedReplacement") == Look(hue=0, mark=0)
        True
    """
    name = order.lower()
    if name in _LOOKS:
        return _LOOKS[name]
    # No other order has the look of a known one. The first two hues are kept for the orders that most charts have.
    every = (Look(hue, mark) for hue in range(2, len(HUES)) for mark in range(len(MARKS)))
    pairs = [look for look in every if look not in _LOOKS.values()]
    return pairs[zlib.crc32(name.encode()) % len(pairs)]


def look_of_label(label: str) -> Look:
    """Return the look of the order that a label begins with ("srs, measured"), or else a look for the label itself."""
    return _LOOKS.get(label.lower().partition(",")[0].partition(" ")[0]) or look_of(label)


def free_look(index: int) -> Look:
    """Return look number `index` for things that are not orders, such as networks and datasets."""
    return Look((6 + index) % len(HUES), (5 - index) % len(MARKS))
