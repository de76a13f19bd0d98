"""`replenish run`: experiments of the paper, executed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.console import command_line, first_process
from replenish.cli.errors import errors_as_sentences

if TYPE_CHECKING:
    from replenish.lab.config import RunConfig
    from replenish.lab.jobs import Job
    from replenish.lab.launch.display import RunsDisplay


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help="a name of `replenish list`, or the beginning of some: table3",
            autocompletion=options.complete_experiment,
        ),
    ],
    scale: options.Scale = "full",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="how many seeds (5 is 0 to 4), or which (0,3,7); by default 1, or what the experiment states"
        ),
    ] = None,
    runs: options.RunsFolder = Path("runs"),
    jobs: options.Jobs = 1,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="effective epochs, if other than the scale's; the schedule is scaled",
        ),
    ] = None,
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    num_nodes: options.NumNodes = 1,
    precision: options.Precision = "32-true",
    threads: options.Threads = 1,
    compile_model: options.Compile = False,
    tensorboard: options.TensorBoard = False,
    launcher: options.LauncherName = "local",
) -> None:
    """Run experiments of the paper, or go on with them.

    What is finished is not run again, what was stopped goes on. Every run has a folder of its own with its config, a
    line of metrics an epoch, checkpoints and a result. Ctrl-C saves; the same command goes on. `replenish report`
    makes tables and figures of the folders.
    """
    with errors_as_sentences():
        chosen_seeds = None if seeds is None else options.parse_seeds(seeds)
    import dataclasses

    from replenish.lab.config import Hardware
    from replenish.lab.experiments import find, stated_seeds
    from replenish.lab.jobs import plan

    with errors_as_sentences():
        chosen = {
            name: dataclasses.replace(config, precision=precision) for name, config in find(experiment, scale).items()
        }
        if epochs is not None:
            chosen = {name: config.for_epochs(epochs) for name, config in chosen.items()}
        hardware = Hardware(accelerator, devices, num_nodes, threads, compile_model)
        options.check_launcher(launcher, hardware)
        planned = plan(
            chosen.values(),
            list(range(stated_seeds(chosen))) if chosen_seeds is None else chosen_seeds,
            runs,
            hardware=hardware,
            tensorboard=tensorboard,
            command=command_line(),
        )
        results = execute(planned, chosen, launcher, jobs)
    diverged = sum(result["status"] == "diverged" for result in results)
    if first_process():
        also = f", {diverged} of them diverged" if diverged else ""
        ended = "1 run has" if len(results) == 1 else f"{len(results)} runs have"
        typer.echo(f"{ended} ended{also}; make the report with: replenish report {shlex.quote(str(runs))}")
    if diverged:
        raise typer.Exit(1)


def execute(
    jobs: Sequence[Job], names: Mapping[str, RunConfig], launcher: str = "local", parallel: int = 1
) -> list[dict[str, Any]]:
    """Run jobs under a live display and return their results; a job is shown by the first experiment that has it."""
    from replenish.lab.launch import launch

    by_config = {config: name for name, config in reversed(list(names.items()))}
    labels = [f"{by_config[job.config.with_seed(0)]}, seed {job.config.seed}" for job in jobs]
    with display_of(labels) as display:
        return launch(jobs, launcher, parallel, display.watch)


def display_of(labels: Sequence[str]) -> RunsDisplay:
    """Return the live display of runs, which the first process alone has."""
    from rich.console import Console

    from replenish.lab.launch.display import RunsDisplay

    return RunsDisplay(labels, Console(stderr=True, quiet=not first_process()))
