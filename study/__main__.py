"""The commands of this repository's own research: `python -m study run|noise|pages|decisive`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replenish.cli import console, options
from replenish.cli.console import command_line, errors_as_sentences, working
from replenish.cli.run import run
from replenish.lab import experiments
from study.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from rich.status import Status

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
experiments.ADDED.update({name: make() for name, make in EXPERIMENTS.items()})
app.command("run", help="Run experiments of the study, such as study/rates: see `replenish run --help`.")(run)


@app.command()
def noise(
    experiment: Annotated[str, typer.Argument(help="noise/digits")] = "noise/digits",
    seeds: Annotated[str, typer.Option(help="how many seeds (5 is 0 to 4), or which (0,3,7 or 5-9)")] = "1",
    runs: options.RunsFolder = Path("results/noise"),
) -> None:
    """Measure the noise of the orders around a minimum. Every seed writes one file; finished seeds are kept."""
    from study.noise.experiment import run_noise
    from study.noise.setting import find

    with errors_as_sentences("stopped; finished seeds are kept, so run the same command again"):
        for name, setting in find(experiment).items():
            for seed in options.parse_seeds(seeds):
                label = f"{name}, seed {seed}"
                with working(label) as status:
                    path = run_noise(name, setting, seed, runs, command_line(), _percent(status, label))
                typer.echo(f"{label}: {path}")


def _percent(status: Status, label: str) -> Callable[[float], None]:
    return lambda done: status.update(f"{label}: {done:.0%}")


@app.command()
def pages() -> None:
    """Write the results of the committed records into the report, the README and the documentation."""
    from study.pages import main

    main()


@app.command()
def decisive(
    runs: Annotated[Path, typer.Argument(help="the folder of the runs of `replenish run decisive`")] = Path("runs"),
    scale: options.Scale = "full",
) -> None:
    """Print whether the runs of the decisive experiment settle the question."""
    from replenish.lab.runs import read_runs
    from study.decisive import RULE, settle_runs

    with errors_as_sentences():
        typer.echo(settle_runs(read_runs(runs), scale).sentence)
        if scale != "full":
            typer.echo(f"This is a trial at the scale {scale}. It settles nothing about the paper.")
        typer.echo(RULE)


if __name__ == "__main__":
    console.PROGRAM[:] = ["python", "-m", "study"]
    app()
