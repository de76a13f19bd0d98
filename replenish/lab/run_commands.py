"""`replenish run` and `replenish demo`: experiments by name, executed and shown."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.lab.command_errors import one_sentence

if TYPE_CHECKING:
    from replenish.lab.config import Hardware, RunConfig
    from replenish.lab.jobs import Job

RunsDir = Annotated[Path, typer.Option("--runs", help="the folder that the runs' folders are in")]
Seeds = Annotated[str, typer.Option(help="how many seeds (5 is 0 to 4), or which (0,3,7)")]
Jobs = Annotated[int, typer.Option(min=1, help="runs at once, each a process of its own")]
Accelerator = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]
Devices = Annotated[int, typer.Option(min=1, help="devices of one run, which share its batches")]
NumNodes = Annotated[int, typer.Option("--num-nodes", min=1, help="machines of one run; start it with torchrun")]
Precision = Annotated[str, typer.Option(help="32-true, 16-mixed, bf16-mixed, bf16-true or 64-true")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads of each process")]
Compile = Annotated[bool, typer.Option("--compile", help="use torch.compile")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="write TensorBoard events as well")]
LauncherName = Annotated[str, typer.Option("--launcher", help="local, slurm or ray")]
Epochs = Annotated[
    int | None, typer.Option(min=1, help="effective epochs, if other than the scale's; the schedule is scaled")
]


def run(
    experiment: Annotated[str, typer.Argument(help="a name of `replenish list`, or the beginning of some: table3")],
    scale: Annotated[str, typer.Option(help="full (the paper's), mini (two CPU cores) or digits (seconds)")] = "full",
    seeds: Seeds = "1",
    runs: RunsDir = Path("runs"),
    jobs: Jobs = 1,
    epochs: Epochs = None,
    accelerator: Accelerator = "auto",
    devices: Devices = 1,
    num_nodes: NumNodes = 1,
    precision: Precision = "32-true",
    threads: Threads = 1,
    compile_model: Compile = False,
    tensorboard: TensorBoard = False,
    launcher: LauncherName = "local",
) -> None:
    """Run experiments of the paper; what is finished is not run again, what was stopped goes on.

    Every run has a folder of its own with its config, a line of metrics an epoch, checkpoints and a result. Ctrl-C
    saves; the same command goes on. `replenish report` makes tables and figures of the folders.
    """
    import dataclasses

    from replenish.lab.experiments import find
    from replenish.lab.jobs import parse_seeds, plan

    with one_sentence():
        chosen = {
            name: dataclasses.replace(config, precision=precision) for name, config in find(experiment, scale).items()
        }
        if epochs is not None:
            chosen = {name: config.for_epochs(epochs) for name, config in chosen.items()}
        hardware = _hardware(accelerator, devices, num_nodes, threads, compile_model)
        command = command_line()
        planned = plan(
            chosen.values(), parse_seeds(seeds), runs, hardware=hardware, tensorboard=tensorboard, command=command
        )
        results = execute(planned, labels_of(planned, chosen), launcher, jobs)
        if first_process():
            _say_how_to_go_on(results, runs)
    if any(result["status"] == "diverged" for result in results):
        raise typer.Exit(1)


def _hardware(accelerator: str, devices: int, num_nodes: int, threads: int, compile_model: bool) -> Hardware:
    from replenish.lab.config import Hardware

    return Hardware(accelerator, devices, num_nodes, threads, compile_model)


def execute(jobs: Sequence[Job], labels: Sequence[str], launcher: str, parallel: int) -> list[dict[str, Any]]:
    """Run jobs under a live display and return their results."""
    from rich.console import Console

    from replenish.lab.display import RunsDisplay
    from replenish.lab.launchers import launch

    console = Console(stderr=True, quiet=not first_process())
    with RunsDisplay(labels, console) as display:
        return launch(jobs, launcher, parallel, display.watch)


def labels_of(jobs: Sequence[Job], names: Mapping[str, RunConfig]) -> list[str]:
    """Return a name for each job: the first experiment that it belongs to, and the seed."""
    by_config = {config: name for name, config in reversed(names.items())}
    return [f"{by_config[job.config.with_seed(0)]}, seed {job.config.seed}" for job in jobs]


def command_line() -> str:
    """Return the command as it was typed, with the program's plain name."""
    return shlex.join(["replenish", *sys.argv[1:]])


def first_process() -> bool:
    """Tell whether this is the process that speaks: with several, the first."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) in ("", "0")


def _say_how_to_go_on(results: Sequence[Mapping[str, Any]], runs: Path) -> None:
    diverged = sum(result["status"] == "diverged" for result in results)
    also = f", {diverged} of them diverged" if diverged else ""
    typer.echo(f"{len(results)} runs have ended{also}; make the report with: replenish report {shlex.quote(str(runs))}")
