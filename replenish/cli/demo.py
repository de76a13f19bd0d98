"""`replenish demo`: the paper's table 3 in miniature, every part of the lab in about a minute."""

from __future__ import annotations

from pathlib import Path

import typer

from replenish.cli import options
from replenish.cli.console import command_line, output
from replenish.cli.errors import errors_as_sentences
from replenish.cli.run import execute


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
            f"after the addition, 40 effective epochs, {len(planned)} runs.\n",
            highlight=False,
        )
        execute(planned, chosen, parallel=jobs)
        done = read_runs(runs)
        print_table(short_table3(by_experiment(done, chosen)), console)
        console.print()
        # The first is the one that counts: SRS against reshuffling, all else equal.
        print_findings(scale_section("digits", done, chosen).findings[:1], console)
        page, _ = write_report(runs, experiments={scale: configs(scale) for scale in SCALES})
    console.print(
        "\nDigits are too easy and the seeds too few to decide anything: this shows the lab at work. What was found on "
        "CIFAR-100 is in the README.\n",
        highlight=False,
    )
    typer.echo(f"The report, with curves and every comparison: {page}")
    typer.echo("Next: replenish compare YOUR_DATA   or   replenish explain --open")
