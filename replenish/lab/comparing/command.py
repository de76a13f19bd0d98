"""`compare_commands`: which order is better in a script of your own, which nobody edits."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from replenish import checks
from replenish.exec.records import RunRecords
from replenish.lab.atomic_files import held
from replenish.lab.comparing.command_launch import run_all, starting
from replenish.lab.comparing.command_run import CommandRun, StoppedError
from replenish.lab.comparing.metric import JsonMetric, Metric
from replenish.lab.comparing.page import answer_page, write_page
from replenish.lab.comparing.question import Answer, Question, run_until_decided
from replenish.lab.config import Hardware
from replenish.orders.fitted import check_fittable


def compare_commands(
    command: str,
    metric: Metric,
    question: Question,
    *,
    runs: str | os.PathLike[str] = "runs",
    launcher: str = "local",
    parallel: int = 1,
    needs: Hardware | None = None,
    budget: float | None = None,
    tell: Callable[[str], None] | None = None,
    command_line: str = "",
) -> tuple[Answer, Path]:
    """Run a command with several orders over several seeds, and say which is better.

    Every run is made as by `replenish exec`, in a folder of its own with its output, exit code, seconds and metric.
    Runs that have finished are not run again, and refused if the script, a module of yours that it imports or a file
    that the command names has changed since, or if they were started in another folder.

    Args:
        command: The command, with {seed} where the script takes its seed. {order} and {folder}, the run's own folder,
            may stand in it too. `python` in front is the Python that runs this.
        metric: How a run's number is found.
        question: Which orders and seeds, and what decides.
        runs: The folder that the runs' folders are in.
        launcher: Where they are executed: "local", "slurm" or "ray".
        parallel: How many runs at once.
        needs: The accelerator and the CPU threads that a cluster is asked for, for each run; on this machine they are
            the script's own business.
        budget: Seconds after which runs are ended; what has finished until then is answered with.
        tell: Told in a line of every run that has ended.
        command_line: What was typed to compare, for the page.

    Returns:
        The answer, and where it was written as a page.

    Raises:
        ChildProcessError: A run failed, or did not use the order.
        ValueError: Something cannot be compared, or the budget is too small for a single pair of runs.
        KeyboardInterrupt: Stopped; what has finished is kept.
    """
    for order in question.orders:
        check_fittable(order, {})
    _check(command, metric, checks.integer("parallel", parallel, minimum=1))
    deadline = None if budget is None else time.monotonic() + budget
    home = Path(runs) / f"command-{hashlib.sha256(command.encode()).hexdigest()[:8]}"
    values: dict[str, dict[int, float]] = {order: {} for order in question.orders}
    seconds: dict[str, dict[int, float]] = {order: {} for order in question.orders}
    done: list[CommandRun] = []

    def note(run: CommandRun, before: str = "") -> None:
        outcome = run.outcome()
        assert outcome is not None
        if done:
            run.check_pair(done[0])
        values[run.order][run.seed] = value = run.value(metric)
        seconds[run.order][run.seed] = outcome["seconds"]
        done.append(run)
        how = before or f"{outcome['seconds']:.1f} s"
        if tell is not None:
            tell(f"{run.order}, seed {run.seed}: {value:.6g} ({how})")

    def run(seeds: Sequence[int]) -> None:
        pairs = [(order, seed) for seed in seeds for order in orders]
        every = [CommandRun(command, order, seed, home / order / f"seed{seed}", since) for order, seed in pairs]
        left = [each for each in every if each.outcome() is None]
        for each in every:
            if each not in left:
                each.check_sources()
                note(each, "finished before")
        run_all(left, start, parallel, deadline, note)

    orders, stopped = question.orders, None
    with (
        held(home, "compares this command"),
        starting(launcher, metric, parallel, home, needs=needs, tell=tell) as start,
    ):
        since = _beginning(home)
        try:
            run_until_decided(question, values, run, parallel=parallel)
        except StoppedError as reason:
            stopped = str(reason)
    pairs = set.intersection(*(set(found) for found in values.values()))
    if stopped and not pairs:
        raise ValueError(f"budget should allow for one run of each order, but {budget:g} s were not enough for that")
    _check_alike([run for run in done if run.seed in pairs])
    answer = question.answer(values, stopped, besides={"Seconds a run": seconds}, warnings=_leftovers(done))
    page = answer_page(answer, "A command of your own", (f"Command: {command}",), command=command_line)
    return answer, write_page(page, home / "report.html")


def _check(command: str, metric: Metric, parallel: int) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"command should be one that a shell could read, but got {command!r}: {error}") from None
    if not words:
        raise ValueError("command should not be empty")
    if "{seed}" not in command:
        raise ValueError(
            f"command should have {{seed}} where the script takes its seed, since else the runs of all seeds would be "
            f"equal, but got {command!r}"
        )
    if isinstance(metric, JsonMetric) and metric.is_shared and parallel > 1:
        raise ValueError(
            f"the JSON file should have {{folder}}, {{seed}} or {{order}} in its name, since {parallel} runs at once "
            f"would write the same, but got {metric.path}"
        )


def _beginning(home: Path) -> float:
    """Return when the first comparison of this command began, by the clock of the disk that its folder is on."""
    mark = home / ".begun"
    if not mark.exists():
        mark.touch()
    return mark.stat().st_mtime


def _leftovers(runs: Sequence[CommandRun]) -> list[str]:
    """Return a warning of files that other runs have left where a run may have resumed from them."""
    read = [(run, path) for run in runs for path in (run.outcome() or {}).get("leftovers", ())]
    if not read:
        return []
    run, path = read[0]
    more = len({path for _, path in read}) - 1
    others = f" and {more} more file{'s' if more > 1 else ''}" if more else ""
    return [
        f"the run of {run.order} with seed {run.seed} began where other runs had left {path}{others}: if the script "
        f"resumes from what it finds, the runs are not pairs; let each write to {{folder}}"
    ]


def _check_alike(runs: Sequence[CommandRun]) -> None:
    """Refuse runs of one seed whose loaders differ in more than the order."""
    by_seed: dict[int, dict[str, list[tuple[int, ...]]]] = {}
    for run in runs:
        outcome = run.outcome()
        assert outcome is not None
        by_seed.setdefault(run.seed, {})[run.order] = RunRecords(tuple(outcome["loaders"])).sizes()
    for seed, sizes in by_seed.items():
        if len(set(map(tuple, sizes.values()))) > 1:
            raise ValueError(
                f"the runs of seed {seed} should differ in the order alone, but their loaders have (N, B, processes) "
                + ", ".join(f"{found} with {order}" for order, found in sizes.items())
            )
