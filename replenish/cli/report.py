"""`replenish report`: a page with tables and figures of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replenish.cli import options
from replenish.cli.console import errors_as_sentences, print_json


def report(
    runs: Annotated[Path, typer.Argument(metavar="RUNS_DIR", help="the folder that holds the folders of the runs")],
    out: Annotated[
        Path | None, typer.Option(help="the page to write, ending in .html; by default report.html in RUNS_DIR")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make tables and figures of runs, as a page and as Markdown, next to the paper's own."""
    from replenish.lab.atomic_files import check_runs_folder

    with errors_as_sentences():
        check_runs_folder(runs)  # before numpy is loaded
    from replenish.lab.experiments import SCALES, configs
    from replenish.lab.report import write_report

    with errors_as_sentences(flags={"out": "--out"}):
        page, markdown = write_report(runs, out, experiments={scale: configs(scale) for scale in SCALES})
    if as_json:
        print_json({"page": str(page), "markdown": str(markdown)})
    else:
        typer.echo(f"{page}\n{markdown}")
