"""A trace as one HTML file: style, scripts and numbers inside, nothing from a network."""

from __future__ import annotations

from replenish.lab.show.page import environment
from replenish.lab.show.svg import mark_path
from replenish.measure.trace import ORDERS, QUEUE_AHEAD, Trace
from replenish.palette import look_of

# Beyond these a page has tiles too small to read, or takes long to load: a million numbers are about 4 MB.
MAX_SLOTS = 400
MAX_STEPS = 2000
MAX_NUMBERS = 1_000_000


def check_sizes(num_samples: int, batch_size: int, steps: int, pool_size: int | None = None) -> None:
    """Raise if a trace of these sizes is too large for a page; better said before it is computed."""
    slots = num_samples if pool_size is None else pool_size
    for name, value in (("num_samples", num_samples), ("pool_size", slots)):
        if value > MAX_SLOTS:
            raise ValueError(f"{name} should be at most {MAX_SLOTS} for a page, which shows them all, but got {value}")
    # Of each step: the pool; the slots, the refill, its positions, three batches, the queue. Sizes below 1 are errors
    # of the order that will be made, which says so.
    largest = min(MAX_STEPS, MAX_NUMBERS // (max(1, slots) + 7 * max(1, batch_size) + QUEUE_AHEAD))
    if steps > largest:
        raise ValueError(
            f"steps should be at most {largest} for a page of {num_samples} samples in batches of {batch_size}, but "
            f"got {steps}; take fewer steps"
        )


def build(trace: Trace) -> str:
    """Return the page that plays a trace, whose sizes are limited: see `check_sizes`.

    Example:
        >>> from replenish.measure.trace import compute_trace
        >>> page = build(compute_trace(num_samples=5, batch_size=2, steps=20))
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
