"""`replenish compare --command ...`: does the order matter in a script of your own?"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import typer

from replenish.cli.compare_data import print_answer
from replenish.cli.console import command_line
from replenish.cli.errors import errors_as_sentences


def compare_command(
    command: str,
    *,
    metric: str | None,
    metric_json: str | None,
    higher_is_better: bool,
    orders: list[str],
    seeds: int | list[int],
    margin: float | None,
    until_decided: bool,
    max_seeds: int,
    budget: str | None,
    runs: Path,
    jobs: int,
    launcher: str,
    accelerator: str,
    threads: int,
    as_json: bool,
    flags: Mapping[str, str],
) -> None:
    """Run the command with every order and seed, and print the verdict."""
    from replenish.lab.comparing.command import compare_commands
    from replenish.lab.comparing.metric import JsonMetric, OutputMetric
    from replenish.lab.comparing.question import Question, parse_duration, seed_list
    from replenish.lab.config import Hardware
    from replenish.lab.stopping import handling, raise_stopped

    with errors_as_sentences("stopped; runs that had ended are kept, so give the same command again", flags=flags):
        if (metric is None) == (metric_json is None):
            raise ValueError(
                "--command should have --metric, a regular expression for what the script prints, or --metric-json, a "
                "file and a key, but got " + ("neither" if metric is None else "both")
            )
        found = JsonMetric.from_text(metric_json) if metric_json is not None else OutputMetric(str(metric))
        question = Question(
            tuple(orders),
            seed_list(seeds, until_decided, max_seeds),
            higher_is_better,
            margin,
            until_decided,
            metric=found.described,
        )
        # A closed terminal ends the runs too. What is ignored stays so: `nohup` does that.
        ends = [signal.SIGTERM, *([signal.SIGHUP] if os.name == "posix" else [])]
        with handling(raise_stopped, *(number for number in ends if signal.getsignal(number) is not signal.SIG_IGN)):
            answer, page = compare_commands(
                command,
                found,
                question,
                runs=runs,
                launcher=launcher,
                parallel=jobs,
                needs=Hardware(accelerator, threads=threads),
                budget=None if budget is None else parse_duration(budget),
                tell=lambda line: typer.echo(line, err=True),
                command_line=command_line(),
            )
    print_answer(answer, page, {"command": command, **answer.to_dict(), "page": str(page)} if as_json else None)
