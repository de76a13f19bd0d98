"""`replenish demo`: the paper's table 3 in miniature, every part of the lab in about a minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from replenish.cli import options
from replenish.cli.console import command_line, output
from replenish.cli.errors import errors_as_sentences
from replenish.cli.run import execute

if TYPE_CHECKING:
    from replenish.lab.config import RunConfig
    from replenish.lab.jobs import Job


def demo(runs: options.RunsFolder = Path("runs/demo"), seeds: options.Seeds = "3", jobs: options.Jobs = 2) -> None:
    """Run the paper's table 3 in miniature, in about a minute.

    On digits, with every part of the lab and nothing to download.
    """
    from replenish.lab.experiments import SCALES, configs, find
    from replenish.lab.jobs import plan
    from replenish.lab.report import by_experiment, scale_section, short_table3, write_report
    from replenish.lab.runs import read_runs
    from replenish.lab.show.terminal import print_findings, print_table

    console = output()
    with errors_as_sentences():
        chosen = find("table3", "digits")
        planned = plan(chosen.values(), options.parse_seeds(seeds), runs, command=command_line())
        console.print(
            "The paper's table 3 in miniature: 1,438 handwritten digits of 8 x 8 pixels, WRN-10-1 with batch norm "
            f"after the addition, {planned[0].config.epochs} effective epochs, {len(planned)} runs.\n",
            highlight=False,
        )
        _execute(planned, chosen, jobs)
        done = read_runs(runs)
        print_table(short_table3(by_experiment(done, chosen)), console)
        console.print()
        # The first is the one that counts: SRS against reshuffling, all else equal.
        print_findings(scale_section("digits", done, chosen).findings[:1], console)
        page, _ = write_report(runs, experiments={scale: configs(scale) for scale in SCALES})
    console.print(
        "\nThat is three seeds on a few easy images: it shows the lab at work, and says nothing about other data. What "
        "was found on CIFAR-100 is in the README.\n",
        highlight=False,
    )
    typer.echo(f"The report, with curves and every comparison: {page}")
    typer.echo("Next: replenish compare YOUR_DATA   or   replenish explain --open")


def _execute(jobs: Sequence[Job], chosen: Mapping[str, RunConfig], parallel: int) -> None:
    """Run the jobs; on a terminal, the table of the end fills up meanwhile."""
    from rich.console import Console

    from replenish.lab import paper
    from replenish.lab.launch import launch
    from replenish.lab.launch.display import live
    from replenish.lab.launch.grid import RunsGrid

    console = Console(stderr=True)
    if not live(console):
        execute(jobs, chosen, parallel=parallel)
        return
    arms = {
        chosen[row.name]: f"{row.method}, B = {row.batch_size}, {'-'.join(map(str, row.schedule))}"
        for row in paper.TABLE3
    }
    with RunsGrid([(arms[job.config.with_seed(0)], job.config.seed) for job in jobs], console) as grid:
        launch(jobs, "local", parallel, grid.watch)
