"""`replenish demo`: why three seeds are not enough, on two rows of the paper's table 3 in miniature.

The package has the record of many seeds, `lab/experiments/demo_runs.jsonl`. `python -m study.demo` wrote it: one line
per run, with its seed, errors, commit and command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

import typer

from replenish.cli import options
from replenish.cli.console import command_line, errors_as_sentences, output
from replenish.cli.run import execute

#: The two experiments that the demonstration compares: SRS and reshuffling with the same batch size and schedule.
ARMS = ("table3/wrn-srs-b64-120-150-175", "table3/wrn-b64-120-150-175")
#: A difference that would not matter: half a point of error, which is two of the 359 test images.
MARGIN = 0.5


def demo(runs: options.RunsFolder = Path("runs/demo"), seeds: options.Seeds = "3", jobs: options.Jobs = 2) -> None:
    """Compare two orders with three seeds, then with many, in about a minute.

    It trains two rows of the paper's table 3 in miniature, on digits. There is nothing to download.
    """
    from replenish.lab.experiments import SCALES, configs, find
    from replenish.lab.jobs import plan
    from replenish.lab.report import by_experiment, write_report
    from replenish.lab.runs import read_runs

    console = output()
    with errors_as_sentences():
        chosen = {name: config for name, config in find("table3", "digits").items() if name in ARMS}
        planned = plan(chosen.values(), options.parse_seeds(seeds), runs, command=command_line())
        console.print(
            "Two rows of the paper's table 3 in miniature: 1,438 handwritten digits of 8 x 8 pixels, WRN-10-1 with "
            f"batch norm after the addition, {planned[0].config.epochs} effective epochs, {len(planned)} runs.\n",
            highlight=False,
        )
        execute(planned, chosen, parallel=jobs)
        groups = by_experiment(read_runs(runs), chosen)
        for paragraph in _lesson(groups[ARMS[0]].errors, groups[ARMS[1]].errors):
            console.print(f"\n{paragraph}", highlight=False)
        page, _ = write_report(runs, experiments={scale: configs(scale) for scale in SCALES})
    typer.echo(f"\nThe report of these runs, with curves, and verdicts from these few seeds only: {page}")
    typer.echo("Next: replenish compare YOUR_DATA   or   replenish explain --open")


def _lesson(srs: Mapping[int, float], reshuffling: Mapping[int, float]) -> Iterator[str]:
    """Yield a paragraph each on the seeds that just ran, on the record of many seeds, and on what to learn from it."""
    from replenish.lab.statistics import paired_difference
    from replenish.lab.verdict import Rule, decide

    names, fixed = ("SRS", "reshuffling"), Rule(unit="points")
    recorded_srs, recorded_reshuffling = recorded_errors()
    looks = {
        n: decide(paired_difference(dict(list(recorded_srs.items())[:n]), recorded_reshuffling), fixed, names)
        for n in range(3, len(recorded_srs) + 1)
    }
    gone = next(n for n, look in looks.items() if not look.sign)
    anytime = Rule(unit="points", margin=MARGIN, anytime=True)
    many = decide(paired_difference(recorded_srs, recorded_reshuffling), anytime, names)

    few = paired_difference(srs, reshuffling)
    yield f"What {_seeds(few.n)} say{'s' if few.n == 1 else ''}: {decide(few, fixed, names).sentence}"
    yield (
        f"What {_seeds(len(recorded_srs))} of the same two rows say, from the record that comes with this package: "
        f"{many.sentence}"
    )
    yield (
        f"Three seeds can lie to you. In the record, seeds 0 to 2 say that SRS is {looks[3].sign} "
        f"({looks[3].numbers} points); with {_seeds(gone)} that claim is gone. This is what `compare --until-decided` "
        "protects you from: its interval holds at all looks together, and makes no claim from three seeds. (There are "
        "359 test images, so one image is 0.28 points.)"
    )


def _seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def recorded_errors() -> tuple[dict[int, float], dict[int, float]]:
    """Return the recorded test errors of each of the `ARMS`, in percent, by seed in ascending order.

    Example:
        >>> srs, reshuffling = recorded_errors()
        >>> list(srs) == list(reshuffling) == list(range(len(srs)))
        True
    """
    found: dict[str, dict[int, float]] = {arm: {} for arm in ARMS}
    lines = resources.files("replenish.lab.experiments").joinpath("demo_runs.jsonl").read_text("utf-8").splitlines()
    for run in map(json.loads, lines):
        found[run["experiment"]][run["seed"]] = run["test_error"]
    return found[ARMS[0]], found[ARMS[1]]
