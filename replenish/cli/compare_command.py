"""`replenish compare --command ...`: does the order matter in a script of your own?"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import typer

from replenish.cli.compare_data import print_answer

if TYPE_CHECKING:
    from replenish.lab.comparing.metric import Metric
    from replenish.lab.comparing.question import Question
    from replenish.lab.jobs import Execution


def compare_command(
    command: str, metric: Metric, question: Question, execution: Execution, *, check: bool, as_json: bool
) -> None:
    """Run the command with every order and seed, and print the verdict."""
    from replenish.lab.comparing.command import compare_commands
    from replenish.lab.stopping import handling, raise_stopped

    # A closed terminal ends the runs too. What is ignored stays so: `nohup` does that.
    ends = [signal.SIGTERM, *([signal.SIGHUP] if os.name == "posix" else [])]
    with handling(raise_stopped, *(number for number in ends if signal.getsignal(number) is not signal.SIG_IGN)):
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
