"""Write the explorer's pages while the site is built; other pages embed them."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from replenish.diagnostics import compute_trace
from replenish.lab.explain import pages


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write `explorer.html` (for how_it_works.md) and `noise.html` (for theory.md) into the built site."""
    if error is None and app.builder.format == "html":
        trace = compute_trace(num_samples=12, batch_size=3, steps=80)
        static = Path(app.outdir) / "_static"
        (static / "explorer.html").write_text(pages.explorer_page(trace), encoding="utf-8")
        (static / "noise.html").write_text(pages.noise_page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages after all others."""
    app.connect("build-finished", write_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
