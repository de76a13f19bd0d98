"""The laws of noise as one HTML file with sliders: two orders, their spectra, and what they do to SGD."""

from __future__ import annotations

from replenish.lab.show.page import environment
from replenish.lab.show.svg import mark_path
from replenish.orders.registry import ORDERS
from replenish.palette import look_of

#: The orders whose laws the page has.
SHOWN = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")
# Of a slider: its id, label, smallest, largest, step and first value. The first three are places in lists of values
# that the script has, the others powers of ten.
_SLIDERS = (
    ("n", "Samples, N", 0, 9, 1, 5),
    ("b", "Batch size, B", 0, 9, 1, 5),
    ("k", "Pool of SRS, k = M/N", 0, 9, 1, 5),
    ("rate", "Learning rate", -4, 0, 0.05, -1),
    ("curvature", "Curvature", -4, 1, 0.05, -2),
)
# Buttons that move the sliders: N = 50,000, B = 50, the paper's pool, learning rate 0.1, so that kappa is 0.1, 1.4, 32.
_PRESETS = tuple(
    (label, {"first": "reshuffling", "second": "srs", "n": 5, "b": 5, "k": 5, "rate": -1, "curvature": curvature})
    for label, curvature in (("A flat direction", -3), ("Where orders differ most", -1.85), ("A sharp direction", -0.5))
)
_PANELS = (
    (
        "spectrum",
        "Spectrum of the noise",
        "cycles per epoch",
        "1 is the noise of independent draws. Vertical bars are spectral lines; height is power spread over one cycle.",
    ),
    (
        "variance",
        "Variance of the weight",
        "κ: learning rate times curvature, per epoch",
        "Flat directions are left, sharp ones right. 1 is the variance under independent draws. Dotted: your κ.",
    ),
)


def build() -> str:
    """Return the page.

    Example:
        >>> page = build()
        >>> page.startswith("<!doctype html>"), "://" in page
        (True, False)
    """
    names = {order: ORDERS[order].label for order in SHOWN}
    marks = {order: mark_path(look_of(order)) for order in SHOWN}
    template = environment("replenish.lab.explain", SHOWN).get_template("noise.html")
    return template.render(names=names, marks=marks, sliders=_SLIDERS, panels=_PANELS, presets=_PRESETS)
