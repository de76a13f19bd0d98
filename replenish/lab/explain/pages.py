"""The explorer and the noise page: HTML files that need no other file."""

from __future__ import annotations

from replenish.lab.show.page import environment
from replenish.lab.show.svg import mark_path
from replenish.measure.trace import ORDERS, QUEUE_AHEAD, Trace
from replenish.orders import registry
from replenish.palette import look_of

# Larger pages have tiles too small to read, or load slowly: a million numbers are about 4 MB.
MAX_SLOTS = 400
MAX_STEPS = 2000
MAX_NUMBERS = 1_000_000

#: The orders of the noise page.
SHOWN = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")
# The sliders: id, label, smallest, largest, step and first value. The values of the first three are indices into lists
# in the script, the others are exponents of ten.
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


def check_sizes(num_samples: int, batch_size: int, steps: int, pool_size: int | None = None) -> None:
    """Raise if a trace of these sizes is too large for a page, before it is computed."""
    slots = num_samples if pool_size is None else pool_size
    for name, value in (("num_samples", num_samples), ("pool_size", slots)):
        if value > MAX_SLOTS:
            raise ValueError(f"{name} should be at most {MAX_SLOTS} for a page, which shows them all, but got {value}")
    # Each step stores the pool, and seven lists as long as a batch: slots, refill, positions, three batches, and the
    # queue, which is longer by QUEUE_AHEAD. The order itself rejects sizes below 1.
    largest = min(MAX_STEPS, MAX_NUMBERS // (max(1, slots) + 7 * max(1, batch_size) + QUEUE_AHEAD))
    if steps > largest:
        raise ValueError(
            f"steps should be at most {largest} for a page of {num_samples} samples in batches of {batch_size}, but "
            f"got {steps}; take fewer steps"
        )


def explorer_page(trace: Trace) -> str:
    """Return the page that plays a trace; `check_sizes` limits its size.

    Example:
        >>> from replenish.measure.trace import compute_trace
        >>> page = explorer_page(compute_trace(num_samples=5, batch_size=2, steps=20))
        >>> page.startswith("<!doctype html>"), "://" in page
        (True, False)
    """
    check_sizes(trace.num_samples, trace.batch_size, len(trace), trace.pool_size)
    template = environment("replenish.lab.explain", ORDERS).get_template("player.html")
    marks = {order: mark_path(look_of(order)) for order in ORDERS}
    return template.render(sizes=_sizes(trace), trace=trace.to_dict(), marks=marks)


def _sizes(trace: Trace) -> str:
    slots = "one slot each" if trace.pool_size == trace.num_samples else f"a pool of {trace.pool_size} slots"
    return (
        f"{trace.num_samples} samples, {slots} · batches of {trace.batch_size} · {len(trace)} steps · "
        f"{trace.sequence} sequence · seed {trace.seed}"
    )


def noise_page() -> str:
    """Return the page with sliders for the noise laws of two orders: their spectra, and what they do to SGD.

    Example:
        >>> page = noise_page()
        >>> page.startswith("<!doctype html>"), "://" in page
        (True, False)
    """
    names = {order: registry.ORDERS[order].label for order in SHOWN}
    marks = {order: mark_path(look_of(order)) for order in SHOWN}
    template = environment("replenish.lab.explain", SHOWN).get_template("noise.html")
    return template.render(names=names, marks=marks, sliders=_SLIDERS, panels=_PANELS, presets=_PRESETS)
