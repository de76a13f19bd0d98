"""`replenish compare`: does SRS help on your data?"""

from __future__ import annotations

import math
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.console import command_line, first_process, output, working
from replenish.cli.errors import errors_as_sentences
from replenish.cli.run import display_of

if TYPE_CHECKING:
    from replenish.lab.comparison import PlannedComparison

#: Until a run's first step: torch is loaded, data are read, the network is built.
SECONDS_TO_START = 5
#: Arguments that a comparison of commands has alone, and those that both have.
_METRIC = ("metric", "metric_json", "higher_is_better")
OF_COMMANDS = ("command", *_METRIC, "margin", "until_decided", "max_seeds", "budget", "as_json")
OF_BOTH = ("data", "orders", "seeds", "runs", "jobs")


def compare(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(help="a dataset (digits, cifar10, cifar100 ...), a folder of images, or an .npz file"),
    ] = None,
    model: Annotated[str, typer.Option(help="a network of `replenish list models`")] = "wrn-10-1",
    orders: options.Orders = "reshuffling,srs,replacement",
    seeds: options.Seeds = "5",
    epochs: Annotated[int, typer.Option(min=1, help="effective epochs; the schedule is scaled to them")] = 40,
    batch_size: Annotated[int, typer.Option(min=1, help="samples in a mini-batch")] = 64,
    learning_rate: Annotated[float, typer.Option(help="until the first decay")] = 0.1,
    image_size: Annotated[int | None, typer.Option(min=1, help="reduce images to this height and width")] = None,
    images_per_class: Annotated[int | None, typer.Option(min=1, help="training images to keep of each class")] = None,
    pad: Annotated[int | None, typer.Option(min=0, help="padding of crops; by default an eighth of the image")] = None,
    flip: Annotated[
        bool | None, typer.Option("--flip/--no-flip", help="mirror half of the images; by default not digits")
    ] = None,
    runs: options.RunsFolder = Path("runs"),
    jobs: options.Jobs = 1,
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    num_nodes: options.NumNodes = 1,
    precision: options.Precision = "32-true",
    threads: options.Threads = 1,
    compile_model: options.Compile = False,
    tensorboard: options.TensorBoard = False,
    launcher: options.LauncherName = "local",
    command: Annotated[
        str | None, typer.Option(help="a training of your own instead of data, with {seed} in it: see below")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="with --command: a regular expression whose group is the number in its output")
    ] = None,
    metric_json: Annotated[
        str | None, typer.Option(metavar="FILE:KEY", help="with --command: a JSON file that it writes, and a key in it")
    ] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="with --command: the metric is an accuracy, say, and no error")
    ] = False,
    margin: Annotated[
        float | None, typer.Option(help="with --command: a difference that would not matter, in the metric's unit")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="with --command: look after every seed, stop when it is decided")
    ] = False,
    max_seeds: Annotated[int, typer.Option(min=1, help="with --until-decided: seeds at most")] = 40,
    budget: Annotated[str | None, typer.Option(help="with --command: time at most, such as 2h or 90m")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="with --command: print JSON")] = False,
) -> None:
    """Does SRS help on your data, or in your training?

    Trains the same network from the same initial weights with several orders, paired over seeds. Prints means with
    95 % intervals, differences taken seed by seed, and a sentence that says what they allow to be said. Errors are
    those of the last epoch; nothing is chosen on the test set.

    A data folder has one folder a class, or `train` and `test` with such folders; see docs/data.md.

    With --command "python train.py --seed {seed}" the training is a script of your own, which nobody edits: each run is
    made as by `replenish exec`, and the first of --orders is the one that the others are set against.
    """
    with errors_as_sentences():
        _check_given(context, data, command)
    if command is not None:
        _compare_command(
            command,
            metric=metric,
            metric_json=metric_json,
            higher_is_better=higher_is_better,
            orders=orders if _is_given(context, "orders") else "reshuffling,srs",
            seeds=seeds,
            margin=margin,
            until_decided=until_decided,
            max_seeds=max_seeds,
            budget=budget,
            runs=runs,
            jobs=jobs,
            as_json=as_json,
        )
        return
    assert data is not None
    from replenish.lab.comparison import plan_comparison
    from replenish.lab.config import Hardware
    from replenish.lab.show.terminal import print_section

    given: dict[str, Any] = {"image_size": image_size, "images_per_class": images_per_class, "pad": pad, "flip": flip}
    recipe = {name: value for name, value in given.items() if value is not None}
    with errors_as_sentences():
        hardware = Hardware(accelerator, devices, num_nodes, threads, compile_model)
        options.check_launcher(launcher, hardware)
        with working(f"reading {data}"):
            planned = plan_comparison(
                data,
                model=model,
                orders=[name.strip() for name in orders.split(",")],
                seeds=options.parse_seeds(seeds),
                runs=runs,
                hardware=hardware,
                tensorboard=tensorboard,
                command=command_line(),
                epochs=epochs,
                batch_size=batch_size,
                learning_rate=learning_rate,
                precision=precision,
                **recipe,
            )
        if first_process():
            typer.echo(_announcement(planned, jobs), err=True)
        with display_of([f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]) as display:
            found = planned.run(launcher, jobs, display.watch)
        if not first_process():
            return
        print_section(found.section, output())
        typer.echo(f"Tables and curves as a page: replenish report {shlex.quote(str(runs))}")
    if found.diverged:
        raise typer.Exit(1)


def _check_given(context: typer.Context, data: str | None, command: str | None) -> None:
    """Refuse options that would say nothing: those of the lab's own training beside a command, and the other way."""
    if (data is None) == (command is None):
        both = f"both {data} and {command!r}" if command else "neither"
        raise ValueError(f"compare should have data, or --command with a training of your own, but got {both}")
    for name in filter(partial(_is_given, context), context.params):
        flag = "--json" if name == "as_json" else "--" + name.replace("_", "-")
        if command is not None and name not in {*OF_COMMANDS, *OF_BOTH}:
            raise ValueError(f"{flag} is of the lab's own training, but got --command; put it into the command")
        if command is None and name in OF_COMMANDS:
            raise ValueError(f"{flag} should be given with --command alone, but got {data}")


def _is_given(context: typer.Context, name: str) -> bool:
    """Tell whether an argument was given on the command line, or has its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _compare_command(command: str, **given: Any) -> None:
    from replenish.cli.compare_command import compare_command

    compare_command(command, **given)


def _announcement(planned: PlannedComparison, parallel: int) -> str:
    """Return what is going to be run, and about how long it takes."""
    from replenish.lab.experiments.costs import DataSize, run_cost

    dataset, config = planned.dataset, planned.configs[0]
    size = DataSize(
        len(dataset.train_labels),
        len(dataset.test_labels),
        dataset.num_classes,
        dataset.channels,
        dataset.image_size[0],
    )
    left = sum(job.ended() is None for job in planned.jobs)
    seconds = math.ceil(left / parallel) * (run_cost(config, size).cpu_hours * 3600 + SECONDS_TO_START)
    told = f"{seconds / 3600:,.1f} h" if seconds >= 7200 else f"{max(math.ceil(seconds / 60), 1)} min"
    runs = f"{len(planned.jobs)} runs of {config.model}"
    if left < len(planned.jobs):
        runs += f", {left} of them still to be run"
    return (
        f"{dataset.name}: {size.train_images:,} training and {size.test_images:,} test images, {size.classes} classes. "
        f"{runs}, about {told} in all on CPU threads."
    )
