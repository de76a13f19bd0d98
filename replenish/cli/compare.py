"""`replenish compare`: does another order train better, on your data or in your own script?"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import PROGRAM, command_line, errors_as_sentences, first_process, print_json, working

if TYPE_CHECKING:
    from replenish.lab.comparing.answer import Answer
    from replenish.lab.comparing.data import PlannedComparison
    from replenish.lab.comparing.metric import Metric
    from replenish.lab.comparing.question import Question
    from replenish.lab.jobs import Execution


def _epochs(text: str) -> tuple[float, ...]:
    """Return effective epochs from "24,30,35", or an empty tuple from "none"."""
    return () if text == "none" else tuple(float(part) for part in text.split(","))


#: Parameters that need --command, and parameters that work with and without it. The others set up the lab's training.
OF_COMMANDS = ("command", "metric_json", "metric_name", "higher_is_better", "check")
OF_BOTH = (
    *("data", "orders", "seeds", "metric", "margin", "until_decided", "max_seeds", "budget"),
    *("runs", "jobs", "as_json"),
)
#: Fields of the runs' configs: with the same value for all orders, and those that can have one per order.
RECIPE = (
    *("image_size", "images_per_class", "pad", "flip", "epochs", "batch_size", "optimizer", "decay_factor", "momentum"),
    *("nesterov", "weight_decay", "label_smoothing", "dropout", "test_every", "clean_every", "precision"),
)
BY_ORDER: dict[str, tuple[str, Callable[[str], Any]]] = {
    "learning_rate": ("--learning-rate", float),
    "schedule": ("--schedule", str),
    "decay_epochs": ("--decays", _epochs),
    "warm_up_epochs": ("--warm-up", float),
}
#: A run loads torch, reads the data and builds the network before its first step: about five seconds.
HOURS_TO_START = 5 / 3600

_EACH = "; ORDER=VALUE for one order only; may be repeated"


def compare(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(help="a dataset (digits, cifar10, cifar100 ...), a folder of images, or an .npz file"),
    ] = None,
    orders: options.Orders = "reshuffling,srs,replacement",
    seeds: options.Seeds = "5",
    metric: Annotated[
        str | None,
        typer.Option(
            help="what decides: error, balanced-error or loss; with --command, a regular expression whose group is the "
            "number in the command's output",
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="the largest difference that would not matter, in the metric's unit")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="add seeds until the comparison is decided")
    ] = False,
    max_seeds: Annotated[int, typer.Option(min=1, help="with --until-decided: the largest number of seeds")] = 40,
    budget: Annotated[str | None, typer.Option(help="the longest time, such as 2h or 90m")] = None,
    as_json: options.Json = False,
    command: Annotated[
        str | None, typer.Option(help="compare runs of this command, with {seed} in it, instead of training on data")
    ] = None,
    metric_json: Annotated[
        str | None, typer.Option(metavar="FILE:KEY", help="a JSON file that the command writes, and a key in it")
    ] = None,
    metric_name: Annotated[
        str | None, typer.Option(help="the metric's name; by default the text before the group, or the key")
    ] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="larger is better, as for accuracy")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks",
            help="repeat one run with another {seed}, to check that the script uses its seed",
        ),
    ] = True,
    image_size: Annotated[int | None, typer.Option(min=1, help="reduce images to this height and width")] = None,
    images_per_class: Annotated[int | None, typer.Option(min=1, help="training images to keep of each class")] = None,
    pad: Annotated[
        int | None, typer.Option(min=0, help="padding for random crops; by default an eighth of the image")
    ] = None,
    flip: Annotated[
        bool | None, typer.Option("--flip/--no-flip", help="mirror half of the images; the default, except for digits")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="a network of `replenish list models`, or module:function, torchvision:NAME or timm:NAME",
            autocompletion=options.complete_model,
        ),
    ] = "wrn-10-1",
    epochs: Annotated[int, typer.Option(min=1, help="effective epochs; the schedule is scaled to them")] = 40,
    batch_size: Annotated[int, typer.Option(min=1, help="samples in a mini-batch")] = 64,
    optimizer: Annotated[str | None, typer.Option(help="sgd (the default) or adamw")] = None,
    learning_rate: Annotated[
        list[str] | None, typer.Option(help=f"the initial learning rate, by default 0.1{_EACH}")
    ] = None,
    schedule: Annotated[list[str] | None, typer.Option(help=f"steps (the default), cosine or constant{_EACH}")] = None,
    decay_epochs: Annotated[
        list[str] | None,
        typer.Option("--decays", help=f"epochs at which the rate drops, such as 24,30,35{_EACH}"),
    ] = None,
    decay_factor: Annotated[
        float | None, typer.Option(help="factor by which a drop multiplies the rate; by default 0.1")
    ] = None,
    warm_up_epochs: Annotated[
        list[str] | None,
        typer.Option("--warm-up", help=f"effective epochs in which the rate rises, by default 0{_EACH}"),
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="SGD's momentum, by default 0.9")] = None,
    nesterov: Annotated[bool | None, typer.Option("--nesterov", help="use Nesterov momentum")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="on all weights, by default 0.0005")] = None,
    label_smoothing: Annotated[
        float | None, typer.Option(help="share of every label to spread over all classes")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="dropout probability in place of the network's own; 0 for none")
    ] = None,
    test_every: Annotated[int | None, typer.Option(min=1, help="effective epochs between tests")] = None,
    clean_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="effective epochs between measurements of the clean training loss and error; by default only at the "
            "end",
        ),
    ] = None,
    precision: options.Precision = "32-true",
    runs: options.RunsFolder = Path("runs"),
    jobs: options.Jobs = 1,
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    num_nodes: options.NumNodes = 1,
    threads: options.Threads = 1,
    compile_model: options.Compile = False,
    tensorboard: options.TensorBoard = False,
) -> None:
    """Train with several orders and print which is better: on your data, or in your own script.

    The runs of one seed train the same network from the same initial weights, so that orders are compared in pairs. The
    first line is the verdict: better, worse, equivalent within --margin, or undecided and what would help. Then come
    the numbers, and the path of a page with curves and every seed. Numbers are from the last epoch; nothing is chosen
    on the test set.

    A data folder has one folder per class, or `train` and `test` with such folders; see docs/data.md.

    With --command "python train.py --seed {seed}" each run is your own script, unmodified, started as by `replenish
    exec`.
    """
    given = given_flags(context)
    stopped = "stopped; runs that had ended are kept, so give the same command again"
    with errors_as_sentences(stopped, flags=given):
        _check_given(given, data, command, until_decided)
        names = [name.strip() for name in orders.split(",")]
        asked: dict[str, Any] = {
            "seeds": None if until_decided else options.parse_seeds(seeds),
            "margin": margin,
            "until_decided": until_decided,
            "max_seeds": max_seeds if until_decided else None,
            "ask_again": _ask_again(margin),
        }
        if data is not None:
            from replenish.lab.data.load import find_source

            find_source(data)  # an unknown name fails before torch is loaded, which takes seconds
        from replenish.lab.comparing.question import Question, parse_duration
        from replenish.lab.config import Hardware
        from replenish.lab.jobs import Execution

        hardware = Hardware(accelerator, devices, num_nodes, threads, compile_model)
        seconds = None if budget is None else parse_duration(budget)
        execution = Execution(runs, jobs, hardware, seconds, tensorboard, command_line())
        if command is not None:
            if "orders" not in given:
                names = ["reshuffling", "srs"]
            found = _command_metric(metric, metric_json, metric_name or "")
            question = Question(names, **asked, higher_is_better=higher_is_better, metric=found.name)
            _compare_command(command, found, question, execution, check=check, as_json=as_json)
        else:
            from replenish.lab.comparing.data import lab_question

            question = lab_question(names, metric=metric or "error", **asked)
            _compare_data(str(data), model, question, execution, _recipe(context.params, names), as_json=as_json)


def _compare_data(
    data: str, model: str, question: Question, execution: Execution, recipe: Mapping[str, Any], *, as_json: bool
) -> None:
    """Train with every order and seed, and print the verdict."""
    from replenish.lab.comparing.data import PlannedComparison
    from replenish.lab.launch.display import display_of

    with working(f"reading {data}"):
        planned = PlannedComparison(data, question, execution, model=model, recipe=recipe)
    if first_process():
        typer.echo(_announcement(planned), err=True)
    with display_of([f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]) as display:
        found = planned.run(display.watch)
    _report(found, as_json)


def _compare_command(
    command: str, metric: Metric, question: Question, execution: Execution, *, check: bool, as_json: bool
) -> None:
    """Run the command with every order and seed, and print the verdict."""
    from replenish.lab.comparing.command import compare_commands

    answer = compare_commands(
        command, metric, question, execution, check=check, tell=lambda line: typer.echo(line, err=True)
    )
    _report(answer, as_json)


def _command_metric(metric: str | None, metric_json: str | None, name: str) -> Metric:
    """Return how to find a command's number: by --metric or by --metric-json."""
    from replenish.lab.comparing.metric import JsonMetric, OutputMetric

    if metric_json is not None and metric is None:
        return JsonMetric.from_text(metric_json, name)
    if metric is not None and metric_json is None:
        return OutputMetric(metric, name)
    raise ValueError(
        "--command should have --metric, a regular expression for what the script prints, or --metric-json, a file and "
        "a key, but got " + ("neither" if metric is None else "both")
    )


def _recipe(given: Mapping[str, Any], orders: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the runs' configs that the command's parameters set.

    Example:
        >>> _recipe({"epochs": 5, "learning_rate": ["0.1", "srs=0.2"]}, ["reshuffling", "srs"])
        {'epochs': 5, 'learning_rate': {'reshuffling': 0.1, 'srs': 0.2}}
    """
    recipe = {name: given[name] for name in RECIPE if given.get(name) is not None}
    for name, (flag, read) in BY_ORDER.items():
        if given.get(name):
            recipe[name] = options.by_order(flag, given[name], orders, read)
    return recipe


def _report(answer: Answer, as_json: bool) -> None:
    """Print warnings to standard error, then verdicts, numbers and the page's path, or all of it as JSON.

    If a run diverged, the command then ends with exit code 1.
    """
    if first_process():
        for warning in answer.warnings:
            typer.echo(f"Warning: {warning}.", err=True)
        if as_json:
            print_json(answer.to_dict())
        else:
            typer.echo("\n".join(answer.lines()))
    if answer.diverged:
        raise typer.Exit(1)


def _announcement(planned: PlannedComparison) -> str:
    """Return a line with the data, the number of runs, and about how long they take."""
    from replenish.lab.experiments.costs import DataSize, duration, run_cost
    from replenish.lab.models.own_network import is_own

    dataset, config = planned.dataset, planned.configs[0]
    images, classes = len(dataset.train_labels), dataset.num_classes
    size = DataSize(images, len(dataset.test_labels), classes, dataset.channels, dataset.image_size[0])
    left = sum(job.ended() is None for job in planned.jobs)
    runs = f"{len(planned.jobs)} runs of {config.model}"
    if planned.question.rule.anytime:
        runs = f"At most {runs}"
    if left < len(planned.jobs):
        runs += f", {left} of them still to be run"
    if not is_own(config.model):
        hours = run_cost(config, size).cpu_hours + HOURS_TO_START
        runs += f", about {duration(math.ceil(left / planned.execution.parallel) * hours)} in all on CPU threads"
    return f"{dataset.name}: {images:,} training and {size.test_images:,} test images, {classes} classes. {runs}."


def _ask_again(margin: float | None) -> str:
    """Return the command that the user typed, with --until-decided in place of --seeds."""
    words = [*PROGRAM]
    left = iter(sys.argv[1:])
    for word in left:
        if word == "--seeds":
            next(left, None)
        elif not word.startswith("--seeds="):
            words.append(word)
    return shlex.join([*words, "--until-decided", *([] if margin is not None else ["--margin", "M"])])


def _check_given(given: Mapping[str, str], data: str | None, command: str | None, until_decided: bool) -> None:
    """Refuse options that would have no effect: those of the lab's own training with a command, and the reverse."""
    if (data is None) == (command is None):
        both = f"both {data} and {command!r}" if command else "neither"
        raise ValueError(f"compare should have data, or --command with a training of your own, but got {both}")
    for name, flag in given.items():
        if command is not None and name not in (*OF_COMMANDS, *OF_BOTH):
            raise ValueError(f"{flag} is of the lab's own training, but got --command; put it into the command")
        if command is None and name in OF_COMMANDS:
            raise ValueError(f"{flag} should be given with --command only, but got {data}")
    if until_decided and "seeds" in given:
        raise ValueError("--seeds should be left out with --until-decided, which takes the first --max-seeds at most")
    if not until_decided and "max_seeds" in given:
        raise ValueError("--max-seeds should be given with --until-decided only; use --seeds for a fixed number")
