"""`replenish run`, `compare`, `report` and `demo`: runs executed, shown and told of."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.lab.command_errors import first_process, one_sentence
from replenish.lab.command_output import output

if TYPE_CHECKING:
    from replenish.lab.config import Hardware, RunConfig
    from replenish.lab.data import Dataset
    from replenish.lab.jobs import Job

RunsDir = Annotated[Path, typer.Option("--runs", help="the folder that the runs' folders are in")]
Seeds = Annotated[str, typer.Option(help="how many seeds (5 is 0 to 4), or which (0,3,7)")]
Jobs = Annotated[int, typer.Option(min=1, help="runs at once, each a process or a job of its own")]
Accelerator = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]
# torchrun tells its processes how many they are.
Devices = Annotated[
    int, typer.Option(min=1, envvar="LOCAL_WORLD_SIZE", help="devices of one run, which share its batches")
]
NumNodes = Annotated[
    int,
    typer.Option(
        "--num-nodes",
        min=1,
        envvar="GROUP_WORLD_SIZE",
        help="machines of one run; start it with torchrun, or --launcher slurm",
    ),
]
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


def compare(
    data: Annotated[str, typer.Argument(help="digits, cifar10, cifar100, a folder of images, or an .npz file")],
    model: Annotated[str, typer.Option(help="a network of `replenish list models`")] = "wrn-10-1",
    orders: Annotated[str, typer.Option(help="the orders to compare")] = "reshuffling,srs,replacement",
    seeds: Seeds = "5",
    epochs: Annotated[int, typer.Option(min=1, help="effective epochs; the schedule is scaled to them")] = 40,
    batch_size: Annotated[int, typer.Option(min=1, help="samples in a mini-batch")] = 64,
    learning_rate: Annotated[float, typer.Option(help="until the first decay")] = 0.1,
    image_size: Annotated[int | None, typer.Option(min=1, help="reduce images to this height and width")] = None,
    images_per_class: Annotated[int | None, typer.Option(min=1, help="training images to keep of each class")] = None,
    pad: Annotated[int | None, typer.Option(min=0, help="padding of crops; by default an eighth of the image")] = None,
    flip: Annotated[
        bool | None, typer.Option("--flip/--no-flip", help="mirror half of the images; by default not digits")
    ] = None,
    runs: RunsDir = Path("runs"),
    jobs: Jobs = 1,
    accelerator: Accelerator = "auto",
    devices: Devices = 1,
    num_nodes: NumNodes = 1,
    precision: Precision = "32-true",
    threads: Threads = 1,
    compile_model: Compile = False,
    tensorboard: TensorBoard = False,
    launcher: LauncherName = "local",
) -> None:
    """Does SRS help on your data? The same network and initial weights with several orders, paired over seeds.

    Prints means with 95 % intervals, differences taken seed by seed, a sentence that says what they allow to be said,
    and how many more seeds would settle it. Errors are those of the last epoch; nothing is chosen on the test set.
    A data folder has one folder a class, or `train` and `test` with such folders; see docs/data.md.
    """
    from rich.console import Console

    from replenish.lab.comparison import check_unchanged, comparison_configs, found_in
    from replenish.lab.jobs import parse_seeds, plan
    from replenish.lab.report.terminal import print_section

    given: dict[str, Any] = {"image_size": image_size, "images_per_class": images_per_class, "pad": pad, "flip": flip}
    recipe = {name: value for name, value in given.items() if value is not None}
    recipe |= {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate, "precision": precision}
    with one_sentence():
        hardware = _hardware(accelerator, devices, num_nodes, threads, compile_model)
        chosen_seeds = parse_seeds(seeds)
        with Console(stderr=True).status(f"reading {data}"):  # silent without a terminal
            dataset, configs = comparison_configs(data, model, [name.strip() for name in orders.split(",")], recipe)
        planned = plan(configs, chosen_seeds, runs, hardware=hardware, tensorboard=tensorboard, command=command_line())
        check_unchanged(planned, dataset)
        if first_process():
            typer.echo(_announcement(dataset, configs[0], len(planned), jobs), err=True)
        labels = [f"{job.config.order}, seed {job.config.seed}" for job in planned]
        results = execute(planned, labels, launcher, jobs)
        if not first_process():
            return
        found = found_in(runs, configs, chosen_seeds)
        print_section(found.section, output())
        typer.echo(f"Tables and curves as a page: replenish report {shlex.quote(str(runs))}")
    if any(result["status"] == "diverged" for result in results):
        raise typer.Exit(1)


def report(
    runs: Annotated[Path, typer.Argument(metavar="RUNS_DIR", help="the folder that the runs' folders are in")],
    out: Annotated[
        Path | None, typer.Option(help="the page to write, ending in .html; by default report.html in RUNS_DIR")
    ] = None,
) -> None:
    """Make the report of runs: one page with the paper's tables and figures beside ours, and the same as Markdown."""
    from replenish.lab.experiments import SCALES, configs
    from replenish.lab.report import write_report

    with one_sentence():
        page, markdown = write_report(runs, out, experiments={scale: configs(scale) for scale in SCALES})
    typer.echo(f"{page}\n{markdown}")


def demo(
    runs: RunsDir = Path("runs/demo"),
    seeds: Seeds = "3",
    jobs: Jobs = 2,
) -> None:
    """Run the paper's table 3 in miniature on digits: every part of the lab in about a minute, nothing to download."""
    from replenish.lab.experiments import SCALES, configs, find
    from replenish.lab.jobs import parse_seeds, plan
    from replenish.lab.report import write_report
    from replenish.lab.report.grouping import by_experiment
    from replenish.lab.report.making import scale_section
    from replenish.lab.report.reading import read_runs
    from replenish.lab.report.terminal import print_findings, print_short_table3

    console = output()
    with one_sentence():
        chosen = find("table3", "digits")
        planned = plan(chosen.values(), parse_seeds(seeds), runs, command=command_line())
        console.print(
            "The paper's table 3 in miniature: 1,438 handwritten digits of 8 x 8 pixels, WRN-10-1 with batch norm "
            f"after the addition, 40 effective epochs, {len(planned)} runs.\n",
            highlight=False,
        )
        execute(planned, labels_of(planned, chosen), "local", jobs)
        done = read_runs(runs)
        print_short_table3(by_experiment(done, chosen), console)
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
    by_config = {config: name for name, config in reversed(list(names.items()))}
    return [f"{by_config[job.config.with_seed(0)]}, seed {job.config.seed}" for job in jobs]


def command_line() -> str:
    """Return the command as it was typed, with the program's plain name."""
    return shlex.join(["replenish", *sys.argv[1:]])


def _say_how_to_go_on(results: Sequence[Mapping[str, Any]], runs: Path) -> None:
    diverged = sum(result["status"] == "diverged" for result in results)
    also = f", {diverged} of them diverged" if diverged else ""
    ended = "1 run has" if len(results) == 1 else f"{len(results)} runs have"
    typer.echo(f"{ended} ended{also}; make the report with: replenish report {shlex.quote(str(runs))}")


def _announcement(dataset: Dataset, config: RunConfig, count: int, parallel: int) -> str:
    """Return what is going to be run, and about how long it takes."""
    from replenish.lab.experiments.costs import DataSize, run_cost

    size = DataSize(
        len(dataset.train_labels),
        len(dataset.test_labels),
        dataset.num_classes,
        dataset.channels,
        dataset.image_size[0],
    )
    hours = run_cost(config, size).cpu_hours * count / parallel
    told = f"{hours:,.1f} h" if hours >= 2 else f"{max(hours * 60, 1):.0f} min"
    return (
        f"{dataset.name}: {size.train_images:,} training and {size.test_images:,} test images, {size.classes} classes. "
        f"{count} runs of {config.model}, about {told} in all on CPU threads."
    )
