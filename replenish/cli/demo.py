"""`replenish demo`: what three seeds say, and what many say, on the paper's table 3 in miniature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from replenish.cli import options
from replenish.cli.console import command_line, errors_as_sentences, output
from replenish.cli.run import execute

if TYPE_CHECKING:
    from replenish.lab.config import RunConfig
    from replenish.lab.jobs import Job
    from replenish.lab.statistics import Difference

#: Half a point of error, two of the 359 test images, is the difference that would not matter.
MARGIN = 0.5


def demo(runs: options.RunsFolder = Path("runs/demo"), seeds: options.Seeds = "3", jobs: options.Jobs = 2) -> None:
    """Compare two orders with three seeds, then with many: a lesson, in about a minute.

    The paper's table 3 in miniature, on digits, with every part of the lab and nothing to download.
    """
    from replenish.lab.experiments import SCALES, configs, find
    from replenish.lab.experiments.demo_record import ARMS
    from replenish.lab.jobs import plan
    from replenish.lab.report import by_experiment, short_table3, write_report
    from replenish.lab.runs import read_runs
    from replenish.lab.show.table import print_table

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
        groups = by_experiment(read_runs(runs), chosen)
        print_table(short_table3(groups), console)
        for paragraph in _lesson(groups[ARMS[0]].errors, groups[ARMS[1]].errors):
            console.print(f"\n{paragraph}", highlight=False)
        page, _ = write_report(runs, experiments={scale: configs(scale) for scale in SCALES})
    typer.echo(f"\nThe report of these runs, with curves; whose verdicts are of so few seeds: {page}")
    typer.echo("Next: replenish compare YOUR_DATA   or   replenish explain --open")


def _lesson(srs: Mapping[int, float], reshuffling: Mapping[int, float]) -> Iterator[str]:
    """Yield what the seeds that just ran say, what the record of many seeds says, and what to learn from it."""
    from replenish.lab.experiments.demo_record import recorded_errors
    from replenish.lab.statistics import paired_difference
    from replenish.lab.verdict import Rule, decide

    names, few = ("SRS", "reshuffling"), paired_difference(srs, reshuffling)
    fixed = Rule(unit="points")
    verdict = decide(few, fixed, names)
    yield f"What {_seeds(few.n)} say{'s' if few.n == 1 else ''}: {verdict.sentence}"

    recorded = recorded_errors()
    anytime = Rule(unit="points", margin=MARGIN, anytime=True)
    many = decide(paired_difference(*recorded), anytime, names)
    yield (
        f"What {_seeds(many.difference.n)} of the same two rows say, from the record that comes with this package: "
        f"{many.sentence}"
    )
    three = decide(_first(recorded, 3), fixed, names)
    if three.sign and not many.sign:
        looks = [decide(_first(recorded, n), fixed, names) for n in range(3, many.difference.n + 1)]
        gone = next(look.difference.n for look in looks if not look.sign)
        yield (
            f"Three seeds can lie to you. In the record, seeds 0 to 2 say that SRS is {three.sign} "
            f"({three.numbers} points); with {_seeds(gone)} that claim is gone. This is what `compare "
            "--until-decided` protects you from: its interval holds at all looks together, and makes no claim from "
            "three seeds. (An error here is that of 359 test images: one image is 0.28 points.)"
        )
    else:
        yield "Decide the number of seeds before you look, or let `compare --until-decided` decide."


def _first(recorded: tuple[dict[int, float], dict[int, float]], n: int) -> Difference:
    from replenish.lab.statistics import paired_difference

    srs, reshuffling = ({seed: errors[seed] for seed in range(n)} for errors in recorded)
    return paired_difference(srs, reshuffling)


def _seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


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
