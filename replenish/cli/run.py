"""`replenish run`: run experiments of the paper."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.console import command_line, errors_as_sentences, first_process

if TYPE_CHECKING:
    from replenish.lab.config import RunConfig
    from replenish.lab.jobs import Job

#: From this many hours on, the command prints how long the runs take; from this many on, it asks before it starts.
HOURS_TO_PRINT, HOURS_TO_ASK = 1 / 6, 24


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            help="a name of `replenish list`, or the beginning of several names, such as table3",
            autocompletion=options.complete_experiment,
        ),
    ],
    scale: options.Scale = "full",
    seeds: Annotated[
        str | None,
        typer.Option(
            help="how many seeds (5 is 0 to 4), or which (0,3,7 or 5-9); by default 1, or the experiment's own number"
        ),
    ] = None,
    runs: options.RunsFolder = Path("runs"),
    jobs: options.Jobs = 1,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="effective epochs in place of the scale's own; the schedule is scaled to them",
        ),
    ] = None,
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    num_nodes: options.NumNodes = 1,
    precision: options.Precision = "32-true",
    threads: options.Threads = 1,
    compile_model: options.Compile = False,
    tensorboard: options.TensorBoard = False,
    yes: Annotated[bool, typer.Option("--yes", help="start without asking, however long it will take")] = False,
) -> None:
    """Run experiments of the paper, or resume them.

    Ctrl-C saves the runs, and the same command resumes them; finished runs are not repeated. Each run has a folder with
    its config, one line of metrics per epoch, checkpoints and a result. `replenish report` makes tables and figures
    from the folders.
    """
    with errors_as_sentences():
        chosen_seeds = None if seeds is None else options.parse_seeds(seeds)  # before numpy is loaded
    import dataclasses

    from replenish.lab.config import Hardware
    from replenish.lab.experiments import find, stage_of
    from replenish.lab.jobs import plan

    with errors_as_sentences():
        chosen = {
            name: dataclasses.replace(config, precision=precision) for name, config in find(experiment, scale).items()
        }
        if epochs is not None:
            chosen = {name: config.for_epochs(epochs) for name, config in chosen.items()}
        stage = stage_of(chosen)
        hardware = Hardware(accelerator, devices, num_nodes, threads, compile_model)
        planned = plan(
            chosen.values(),
            chosen_seeds or range(stage.seeds if stage else 1),
            runs,
            hardware=hardware,
            tensorboard=tensorboard,
            command=command_line(),
        )
        if stage is not None and first_process():
            typer.echo(stage.purpose, err=True)
        _announce_cost(planned, jobs, yes)
        results = execute(planned, chosen, jobs)
    diverged = sum(result["status"] == "diverged" for result in results)
    if first_process():
        also = f", {diverged} of them diverged" if diverged else ""
        ended = "1 run has" if len(results) == 1 else f"{len(results)} runs have"
        typer.echo(f"{ended} ended{also}; make the report with: replenish report {shlex.quote(str(runs))}")
    if diverged:
        raise typer.Exit(1)


def _announce_cost(planned: Sequence[Job], parallel: int, yes: bool) -> None:
    """Print about how long the runs take. If that is a day or more, ask first, or require --yes without a terminal."""
    from replenish.lab.experiments.costs import duration, known_data, run_cost

    left = [job for job in planned if job.ended() is None]
    if not left:
        return
    hardware = left[0].hardware
    on_gpu = _on_gpu(hardware.accelerator)
    costs = [run_cost(job.config, known_data(job.config)) for job in left]
    each = [cost.gpu_hours if on_gpu else cost.cpu_hours for cost in costs]
    workers = min(parallel, len(left)) * hardware.devices * hardware.num_nodes * (1 if on_gpu else hardware.threads)
    hours = max(sum(each) / workers, max(each) / hardware.devices)
    unit = ("GPU" if on_gpu else "CPU thread") + ("s" if workers > 1 else "")
    runs = "1 run" if len(left) == 1 else f"{len(left)} runs"
    sentence = f"{runs} to do: about {duration(hours)} on {workers} {unit}, to within a factor of two or so"
    asks = hours >= HOURS_TO_ASK and not yes
    if asks and not sys.stdin.isatty():
        raise ValueError(f"--yes should be given to start this: {sentence}")
    if hours >= HOURS_TO_PRINT and first_process():
        typer.echo(f"{sentence}.", err=True)
    if asks:
        typer.confirm("Start?", abort=True, err=True)


def _on_gpu(accelerator: str) -> bool:
    if accelerator != "auto":
        return accelerator != "cpu"
    import torch

    return torch.cuda.is_available()


def execute(jobs: Sequence[Job], names: Mapping[str, RunConfig], parallel: int = 1) -> list[dict[str, Any]]:
    """Run jobs under a live display and return their results; a job is labelled by the first experiment that has it."""
    from replenish.lab.launch import launch
    from replenish.lab.launch.display import display_of

    by_config = {config: name for name, config in reversed(list(names.items()))}
    labels = [f"{by_config[job.config.with_seed(0)]}, seed {job.config.seed}" for job in jobs]
    with display_of(labels) as display:
        return launch(jobs, parallel, display.watch)
