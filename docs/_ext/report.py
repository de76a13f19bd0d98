"""Write the report of results/ while the site is built; what_we_found.md links to it."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from replenish.lab.experiments import SCALES, configs
from replenish.lab.report import write_report


def write_page(app: Sphinx, error: Exception | None) -> None:
    """Write `_static/report.html` into the built site."""
    results = Path(app.srcdir).parent / "results"  # without them, the check for dead links fails
    if error is None and app.builder.format == "html" and results.is_dir():
        experiments = {scale: configs(scale) for scale in SCALES}
        write_report(results, Path(app.outdir) / "_static" / "report.html", experiments=experiments)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page after all others."""
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
