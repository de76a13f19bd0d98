"""The explorer's pages beside the site's own: made by the package while building, embedded by other pages."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from replenish.diagnostics import compute_trace
from replenish.lab.explain import pages


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write `explorer.html` (for how_it_works.md) and `noise.html` (for theory.md) into what was built."""
    if error is None and app.builder.format == "html":
        trace = compute_trace(num_samples=12, batch_size=3, steps=80)
        static = Path(app.outdir) / "_static"
        (static / "explorer.html").write_text(pages.explorer_page(trace), encoding="utf-8")
        (static / "noise.html").write_text(pages.noise_page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the pages when all others are there."""
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
