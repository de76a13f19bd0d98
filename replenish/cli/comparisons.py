"""The two kinds of `replenish compare`: the lab trains a network on your data, or runs your command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from replenish.cli.console import first_process, print_json, working
from replenish.cli.run import display_of

if TYPE_CHECKING:
    from replenish.lab.comparing.data import PlannedComparison
    from replenish.lab.comparing.metric import Metric
    from replenish.lab.comparing.question import Answer, Question
    from replenish.lab.jobs import Execution

#: Until a run's first step: torch is loaded, data are read, the network is built.
SECONDS_TO_START = 5


def compare_data(
    data: str, model: str, question: Question, execution: Execution, recipe: Mapping[str, Any], *, as_json: bool
) -> None:
    """Train with every order and seed, and print the verdict."""
    from replenish.lab.comparing.data import PlannedComparison

    with working(f"reading {data}"):
        planned = PlannedComparison(data, question, execution, model=model, recipe=recipe)
    if first_process():
        typer.echo(_announcement(planned), err=True)
    with display_of([f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]) as display:
        found = planned.run(display.watch)
    if first_process():
        print_answer(found.answer, found.page, found.to_dict() if as_json else None)
    if found.diverged:
        raise typer.Exit(1)


def compare_command(
    command: str, metric: Metric, question: Question, execution: Execution, *, check: bool, as_json: bool
) -> None:
    """Run the command with every order and seed, and print the verdict."""
    from replenish.lab.comparing.command import compare_commands

    answer, page = compare_commands(
        command, metric, question, execution, check=check, tell=lambda line: typer.echo(line, err=True)
    )
    print_answer(answer, page, {"command": command, **answer.to_dict(), "page": str(page)} if as_json else None)


def command_metric(metric: str | None, metric_json: str | None, name: str) -> Metric:
    """Return how a command's number is found, from its options."""
    from replenish.lab.comparing.metric import JsonMetric, OutputMetric

    if metric_json is not None and metric is None:
        return JsonMetric.from_text(metric_json, name)
    if metric is not None and metric_json is None:
        return OutputMetric(metric, name)
    raise ValueError(
        "--command should have --metric, a regular expression for what the script prints, or --metric-json, a file and "
        "a key, but got " + ("neither" if metric is None else "both")
    )


def print_answer(answer: Answer, page: Path, as_json: dict[str, Any] | None) -> None:
    """Print warnings to standard error, then verdicts, numbers and the page's path; or JSON."""
    for warning in answer.warnings:
        typer.echo(f"Warning: {warning}.", err=True)
    if as_json is not None:
        print_json(as_json)
        return
    for line in answer.lines():
        typer.echo(line)
    typer.echo(f"Page: {page}")


def _announcement(planned: PlannedComparison) -> str:
    """Return what is going to be run, and about how long it takes."""
    from replenish.lab.experiments.costs import DataSize, run_cost
    from replenish.lab.models.own_network import is_own

    dataset, config = planned.dataset, planned.configs[0]
    size = DataSize(
        len(dataset.train_labels),
        len(dataset.test_labels),
        dataset.num_classes,
        dataset.channels,
        dataset.image_size[0],
    )
    left = sum(job.ended() is None for job in planned.jobs)
    most = "at most " if planned.question.rule.anytime else ""
    runs = f"{most}{len(planned.jobs)} runs of {config.model}"
    if left < len(planned.jobs):
        runs += f", {left} of them still to be run"
    if not is_own(config.model):
        seconds = math.ceil(left / planned.execution.parallel) * (
            run_cost(config, size).cpu_hours * 3600 + SECONDS_TO_START
        )
        told = f"{seconds / 3600:,.1f} h" if seconds >= 7200 else f"{max(math.ceil(seconds / 60), 1)} min"
        runs += f", about {told} in all on CPU threads"
    return (
        f"{dataset.name}: {size.train_images:,} training and {size.test_images:,} test images, {size.classes} classes. "
        f"{runs[0].upper()}{runs[1:]}."
    )
