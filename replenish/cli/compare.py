"""`replenish compare`: does SRS help on your data, or in your training?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import PROGRAM, command_line, errors_as_sentences

#: Arguments that a comparison of commands has alone, and those that both have; the others are of the lab's training.
OF_COMMANDS = ("command", "metric_json", "metric_name", "higher_is_better", "check")
OF_BOTH = (
    *("data", "orders", "seeds", "metric", "margin", "until_decided", "max_seeds", "budget"),
    *("runs", "jobs", "launcher", "as_json"),
)
#: What a cluster is asked for; on this machine a command itself says what it uses.
OF_CLUSTERS = ("accelerator", "threads")

_EACH = "; ORDER=VALUE for one order alone, may be given again"


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
            help="what decides: error, balanced-error or loss; with --command a regular expression whose group is the "
            "number in its output",
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="a difference that would not matter, in the metric's unit")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="look after every seed, stop when it is decided")
    ] = False,
    max_seeds: Annotated[int, typer.Option(min=1, help="with --until-decided: seeds at most")] = 40,
    budget: Annotated[str | None, typer.Option(help="time at most, such as 2h or 90m")] = None,
    as_json: options.Json = False,
    command: Annotated[str | None, typer.Option(help="instead of data: a command with {seed} in it")] = None,
    metric_json: Annotated[
        str | None, typer.Option(metavar="FILE:KEY", help="a JSON file that it writes, and a key in it")
    ] = None,
    metric_name: Annotated[
        str | None, typer.Option(help="the metric's name, by default the text before the group, or the key")
    ] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="larger is better, as for accuracy")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks",
            help="repeat one run with another {seed}, which shows whether the script uses it",
        ),
    ] = True,
    image_size: Annotated[int | None, typer.Option(min=1, help="reduce images to this height and width")] = None,
    images_per_class: Annotated[int | None, typer.Option(min=1, help="training images to keep of each class")] = None,
    pad: Annotated[int | None, typer.Option(min=0, help="padding of crops; by default an eighth of the image")] = None,
    flip: Annotated[
        bool | None, typer.Option("--flip/--no-flip", help="mirror half of the images; by default not digits")
    ] = None,
    model: Annotated[
        str,
        typer.Option(help="a network of `replenish list models`, or module:function, torchvision:NAME, timm:NAME"),
    ] = "wrn-10-1",
    epochs: Annotated[int, typer.Option(min=1, help="effective epochs; the schedule is scaled to them")] = 40,
    batch_size: Annotated[int, typer.Option(min=1, help="samples in a mini-batch")] = 64,
    optimizer: Annotated[str | None, typer.Option(help="sgd (the default) or adamw")] = None,
    learning_rate: Annotated[list[str] | None, typer.Option(help=f"at the start, by default 0.1{_EACH}")] = None,
    schedule: Annotated[list[str] | None, typer.Option(help=f"steps (the default), cosine or constant{_EACH}")] = None,
    decay_epochs: Annotated[
        list[str] | None,
        typer.Option("--decays", help=f"epochs at which the rate drops, such as 24,30,35{_EACH}"),
    ] = None,
    decay_factor: Annotated[
        float | None, typer.Option(help="what a drop multiplies the rate by, by default 0.1")
    ] = None,
    warm_up_epochs: Annotated[
        list[str] | None,
        typer.Option("--warm-up", help=f"effective epochs in which the rate rises, by default 0{_EACH}"),
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="of SGD, by default 0.9")] = None,
    nesterov: Annotated[bool | None, typer.Option("--nesterov", help="Nesterov's momentum")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="on all weights, by default 0.0005")] = None,
    label_smoothing: Annotated[
        float | None, typer.Option(help="share of every label that is spread over all classes")
    ] = None,
    dropout: Annotated[float | None, typer.Option(help="in the place of the network's own; 0 for none")] = None,
    test_every: Annotated[int | None, typer.Option(min=1, help="effective epochs between tests")] = None,
    clean_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="effective epochs between measurements of the clean training loss and error; by default in the end",
        ),
    ] = None,
    precision: options.Precision = "32-true",
    runs: options.RunsFolder = Path("runs"),
    jobs: options.Jobs = 1,
    launcher: options.LauncherName = "local",
    accelerator: options.Accelerator = "auto",
    devices: options.Devices = 1,
    num_nodes: options.NumNodes = 1,
    threads: options.Threads = 1,
    compile_model: options.Compile = False,
    tensorboard: options.TensorBoard = False,
) -> None:
    """Does SRS help on your data, or in your training?

    Trains the same network from the same initial weights with several orders, paired over seeds. The first line says
    which order is better, worse, equivalent within --margin, or that it is undecided and what would help; then come
    the numbers, and where the page with curves and every seed is. Numbers are those of the last epoch; nothing is
    chosen on the test set.

    A data folder has one folder a class, or `train` and `test` with such folders; see docs/data.md.

    With --command "python train.py --seed {seed}" the training is a script of your own, which nobody edits: each run is
    made as by `replenish exec`.
    """
    given = given_flags(context)
    stopped = "stopped; runs that had ended are kept, so give the same command again"
    with errors_as_sentences(stopped, flags=given):
        _check_given(given, data, command, launcher, until_decided)
        chosen_seeds = max_seeds if until_decided else options.parse_seeds(seeds)
        options.check_launcher(launcher, devices * num_nodes)
        names = [name.strip() for name in orders.split(",")]
        asked: dict[str, Any] = {
            "seeds": chosen_seeds,
            "margin": margin,
            "until_decided": until_decided,
            "max_seeds": max_seeds,
            "ask_again": _ask_again(margin),
        }
        if data is not None:
            from replenish.lab.data.load import find_source

            find_source(data)  # an unknown name fails before torch is loaded, which takes seconds
        from replenish.lab.comparing.question import Question, parse_duration
        from replenish.lab.config import Hardware
        from replenish.lab.jobs import Execution

        execution = Execution(
            runs,
            launcher,
            jobs,
            Hardware(accelerator, devices, num_nodes, threads, compile_model),
            None if budget is None else parse_duration(budget),
            tensorboard,
            command_line(),
        )
        if command is not None:
            from replenish.cli.comparisons import command_metric, compare_command

            if "orders" not in given:
                names = ["reshuffling", "srs"]
            found = command_metric(metric, metric_json, metric_name or "")
            question = Question(names, **asked, higher_is_better=higher_is_better, metric=found.name)
            compare_command(command, found, question, execution, check=check, as_json=as_json)
            return
        from replenish.cli.comparisons import compare_data
        from replenish.lab.comparing.data import lab_question

        each: dict[str, tuple[str, list[str] | None, Callable[[str], Any]]] = {
            "learning_rate": ("--learning-rate", learning_rate, float),
            "schedule": ("--schedule", schedule, str),
            "decay_epochs": ("--decays", decay_epochs, _epochs),
            "warm_up_epochs": ("--warm-up", warm_up_epochs, float),
        }
        fields = {
            "image_size": image_size,
            "images_per_class": images_per_class,
            "pad": pad,
            "flip": flip,
            "optimizer": optimizer,
            "decay_factor": decay_factor,
            "momentum": momentum,
            "nesterov": nesterov,
            "weight_decay": weight_decay,
            "label_smoothing": label_smoothing,
            "dropout": dropout,
            "test_every": test_every,
            "clean_every": clean_every,
        }
        recipe: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "precision": precision}
        recipe |= {name: value for name, value in fields.items() if value is not None}
        for name, (flag, words, read) in each.items():
            if words:
                recipe[name] = options.by_order(flag, words, names, read)
        assert data is not None
        question = lab_question(names, metric=metric or "error", **asked)
        compare_data(data, model, question, execution, recipe, as_json=as_json)


def _ask_again(margin: float | None) -> str:
    """Return the command that was typed, changed to look after every seed."""
    words = [*PROGRAM]
    left = iter(sys.argv[1:])
    for word in left:
        if word == "--seeds":
            next(left, None)
        elif not word.startswith("--seeds="):
            words.append(word)
    words.append("--until-decided")
    if margin is None:
        return f"{shlex.join(words)} --margin M, with the largest difference that does not matter for M"
    return shlex.join(words)


def _epochs(text: str) -> tuple[float, ...]:
    """Return effective epochs from "24,30,35"; none from "none"."""
    return () if text == "none" else tuple(float(part) for part in text.split(","))


def _check_given(
    given: Mapping[str, str], data: str | None, command: str | None, launcher: str, until_decided: bool
) -> None:
    """Refuse options that would say nothing: those of the lab's own training beside a command, and the other way."""
    if (data is None) == (command is None):
        both = f"both {data} and {command!r}" if command else "neither"
        raise ValueError(f"compare should have data, or --command with a training of your own, but got {both}")
    for name, flag in given.items():
        if command is not None and name in OF_CLUSTERS:
            if launcher == "local":
                raise ValueError(
                    f"{flag} with --command is what a cluster is asked for, but got --launcher local; put it into the "
                    f"command"
                )
        elif command is not None and name not in {*OF_COMMANDS, *OF_BOTH}:
            raise ValueError(f"{flag} is of the lab's own training, but got --command; put it into the command")
        if command is None and name in OF_COMMANDS:
            raise ValueError(f"{flag} should be given with --command alone, but got {data}")
    if until_decided and "seeds" in given:
        raise ValueError("--seeds should be left out with --until-decided, which takes the first --max-seeds at most")
    if not until_decided and "max_seeds" in given:
        raise ValueError("--max-seeds should be given with --until-decided alone; say --seeds for a fixed number")
