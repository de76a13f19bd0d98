"""A trace as one HTML file: style, scripts and numbers inside, nothing from a network."""

from __future__ import annotations

import html
import json
from importlib import resources
from pathlib import Path

from replenish.lab.whole_files import write_whole
from replenish.trace import QUEUE_AHEAD, Trace

# Beyond these a page has tiles too small to read, or takes long to load: a million numbers are about 4 MB.
MAX_SLOTS = 400
MAX_STEPS = 2000
MAX_NUMBERS = 1_000_000

SCRIPTS = ("stage.js", "charts.js", "player.js")


def check_sizes(num_samples: int, batch_size: int, steps: int, pool_size: int | None = None) -> None:
    """Raise if a trace of these sizes is too large for a page; better said before it is computed.

    Args:
        num_samples: How many samples there are.
        batch_size: How many are drawn at a step.
        steps: How many steps the trace has.
        pool_size: The slots of the pool; None means one for each sample.
    """
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
    """Return the page that plays a trace.

    Args:
        trace: What to play; its sizes are limited, see `check_sizes`.

    Example:
        >>> from replenish.trace import compute_trace
        >>> page = build(compute_trace(num_samples=5, batch_size=2, steps=20))
        >>> page.startswith("<!doctype html>"), "://" in page
        (True, False)
    """
    check_sizes(trace.num_samples, trace.batch_size, len(trace), trace.pool_size)
    # "<" is written as an escape, so that no string can end the script element that holds the numbers.
    numbers = json.dumps(trace.to_dict(), separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "<!-- style -->": f"<style>\n{_part('page.css')}</style>",
        "<!-- sizes -->": html.escape(_sizes(trace)),
        "<!-- trace -->": f'<script type="application/json" id="trace">{numbers}</script>',
        "<!-- scripts -->": "<script>\n" + "\n".join(_part(name) for name in SCRIPTS) + "</script>",
    }
    page = _part("page.html")
    for place, part in parts.items():
        if page.count(place) != 1:
            raise RuntimeError(f"page.html should have {place} once")
        page = page.replace(place, part)
    return page


def write(trace: Trace, path: Path) -> None:
    """Write the page to a file, whole or not at all.

    Args:
        trace: What to play.
        path: A name that ends in .html, in a folder that is there; see `check_path`.
    """
    check_path(path)
    write_whole(path, build(trace).encode())


def check_path(path: Path) -> None:
    """Raise if a page cannot be written to `path`."""
    if path.suffix.lower() != ".html":
        raise ValueError(f"--html should be the name of an .html file, but got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"--html should be in a folder that is there, but got {path}")
    if path.is_dir():
        raise ValueError(f"--html should be a file, but {path} is a folder")


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _sizes(trace: Trace) -> str:
    slots = "one slot each" if trace.pool_size == trace.num_samples else f"a pool of {trace.pool_size} slots"
    return (
        f"{trace.num_samples} samples, {slots} · batches of {trace.batch_size} · {len(trace)} steps · "
        f"{trace.sequence} sequence · seed {trace.seed}"
    )
