"""`replenish compare DATA`: the lab trains its networks, or yours, with every order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from replenish.cli.console import first_process, print_json, working
from replenish.cli.run import display_of

if TYPE_CHECKING:
    from replenish.lab.comparing.answer import Answer
    from replenish.lab.comparing.data import PlannedComparison
    from replenish.lab.comparing.question import Question
    from replenish.lab.jobs import Execution

#: Until a run's first step: torch is loaded, data are read, the network is built.
SECONDS_TO_START = 5


def compare_data(
    data: str, model: str, question: Question, execution: Execution, recipe: Mapping[str, Any], *, as_json: bool
) -> None:
    """Train with every order and seed, and print the verdict."""
    from replenish.lab.comparing.data import plan_comparison

    with working(f"reading {data}"):
        planned = plan_comparison(data, question, execution, model=model, recipe=recipe)
    if first_process():
        typer.echo(_announcement(planned), err=True)
    with display_of([f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]) as display:
        found = planned.run(display.watch)
    if first_process():
        print_answer(found.answer, found.page, found.to_dict() if as_json else None)
    if found.diverged:
        raise typer.Exit(1)


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
