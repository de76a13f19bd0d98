"""`compare_commands`: which order is better in a script of the user's, which stays as it is."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from replenish import checks
from replenish.exec.records import RunRecords
from replenish.lab.atomic_files import held
from replenish.lab.comparing.answer import Answer, digits, make_answer
from replenish.lab.comparing.command_job import CommandJob
from replenish.lab.comparing.metric import JsonMetric, Metric, check_words, split_command
from replenish.lab.comparing.page import answer_page
from replenish.lab.comparing.question import Outcomes, Question, run_until_decided
from replenish.lab.comparing.written import optional_stopping, write_page, write_record
from replenish.lab.config import Hardware
from replenish.lab.jobs import Execution
from replenish.lab.launch import LAUNCHERS, launch
from replenish.lab.stopping import GivenUpError, OutOfTimeError, Stopped
from replenish.orders.building import check_fittable, is_file, read_order

PAGE = "report.html"


class FailedError(GivenUpError):
    """A run failed in a way that others will too."""


def compare_commands(
    command: str,
    metric: Metric,
    question: Question,
    execution: Execution | None = None,
    *,
    check: bool = True,
    tell: Callable[[str], None] | None = None,
) -> tuple[Answer, Path]:
    """Run a command with several orders over several seeds, and say which is better.

    Every run is made as by `replenish exec`, in a folder of its own with its output, exit code, seconds and metric.
    Runs that have ended are not run again. They are refused if the script, a module of the user's that it imports or a
    file that the command names has changed since, or if they were started in another folder. A run that fails or
    diverges does not lose the others: the answer names it.

    Args:
        command: The command, with {seed} where the script takes its seed. {order} and {folder}, the run's own folder,
            may be in it too. `python` in front is the Python that runs this.
        metric: How a run's number is found.
        question: Which orders and seeds, and by which rule.
        execution: Where the runs are executed. Its budget ends the runs that are under way; its hardware is for
            clusters: on this machine the script decides what it uses.
        check: Whether to look for the metric's words in the script's files first, and to repeat one run with another
            {seed} and the same order, which shows whether the script uses its seed.
        tell: Called with a line for every run that has ended.

    Returns:
        The answer, and the path of its page.

    Raises:
        ChildProcessError: The first run failed, or most of them did.
        ValueError: Something cannot be compared, or the budget is too small for a single pair of runs.
        KeyboardInterrupt: Stopped; what has ended is kept.
    """
    execution = execution or Execution()
    checks.one_of("launcher", execution.launcher, LAUNCHERS)
    for order in question.orders:
        check_fittable(order, {})
    _check(command, metric, execution.parallel)
    if check:
        check_words(metric, command)
    home = execution.runs / f"command-{hashlib.sha256(command.encode()).hexdigest()[:8]}"
    with held(home, "compares this command"):
        comparison = _Comparison(command, metric, question, execution, home, tell or (lambda line: None))
        stopped = comparison.run(check and len(question.seeds) > 1)
    answer = comparison.answer(stopped)
    page = answer_page(answer, "A command of your own", (f"Command: {command}",), command=execution.command)
    path = write_page(answer, page, home / PAGE)
    write_record(answer, path, command=command)
    return answer, path


def folder_name(order: str) -> str:
    """Return the name of the folder of an order's runs; that of a config file changes with what the file names."""
    if not is_file(order):
        return order
    named = json.dumps(read_order(order).config(), sort_keys=True)
    return f"{Path(order).stem}-{hashlib.sha256(named.encode()).hexdigest()[:8]}"


class _Comparison:
    """The runs of one comparison and how they ended."""

    def __init__(
        self,
        command: str,
        metric: Metric,
        question: Question,
        execution: Execution,
        home: Path,
        tell: Callable[[str], None],
    ) -> None:
        self.question, self.execution, self.home, self.tell = question, execution, home, tell
        self.outcomes = Outcomes(question)
        self.done: list[CommandJob] = []
        self.warnings: list[str] = []
        local = execution.launcher == "local"
        job = partial(
            CommandJob,
            command,
            metric=metric,
            since=_beginning(home),
            # A command on this machine takes the devices that it wants; only a cluster is asked for some.
            hardware=Hardware("cpu") if local else execution.hardware,
        )
        self._job: Callable[[str, int], CommandJob] = lambda order, seed: job(
            order=order, seed=seed, folder=home / folder_name(order) / f"seed{seed}"
        )
        budget = execution.budget
        self._deadline = None if budget is None else time.monotonic() + budget

    def run(self, check_seed: bool) -> str | None:
        """Execute what has not ended, and return why there are fewer seeds than asked for, if there are."""
        stopped = None
        try:
            stopped = run_until_decided(
                self.question,
                self.outcomes.values,
                partial(self._round, check_seed=check_seed),
                parallel=self.execution.parallel,
            )
        except OutOfTimeError as reason:
            stopped = str(reason)
        except Stopped as signal:
            message = "stopped; runs that had ended are kept, so give the same command again"
            raise Stopped(message, signal.signal_number) from None
        except FailedError as error:
            raise ChildProcessError(str(error)) from None
        if self.outcomes.pairs():
            return stopped
        if stopped:
            raise ValueError(
                f"budget should allow for one run of each order, but {self.execution.budget:g} s were not enough"
            )
        self.outcomes.refuse_nothing()
        return stopped

    def _round(self, seeds: Sequence[int], check_seed: bool) -> None:
        jobs = [self._job(order, seed) for seed in seeds for order in self.question.orders]
        if check_seed and jobs[0].seed == self.question.seeds[0]:
            jobs.insert(1, self._repeat())
        left = []
        for job in jobs:
            result = job.ended()
            if result is None:
                job.forget()
                left.append(job)
            else:
                job.check_sources()
                self._note(job, result, "finished before")

        def watch(place: int, event: dict[str, Any]) -> None:
            if event["event"] == "end":
                seconds = event["result"].get("seconds", 0.0)
                self._note(left[place], event["result"], f"{seconds:.1f} s")
            elif event["event"] in ("warning", "stopped"):
                self.tell(event["message"])

        launch(left, self.execution.launcher, self.execution.parallel, watch, self._deadline)

    def _note(self, job: CommandJob, result: dict[str, Any], how: str) -> None:
        if job.script_seed is not None:
            if result["status"] != "failed":
                name = f"{job.order}, seed {job.seed} with {job.script_seed} for {{seed}}"
                self.tell(f"{name}: {_value_words(result)} ({how})")
        elif result["status"] == "failed":
            if not self.outcomes.fail(job.order, job.seed, result["message"]):
                raise FailedError(result["message"])
            self.tell(f"{job.order}, seed {job.seed}: failed; the others go on")
        else:
            if self.done:
                job.check_pair(self.done[0])
            self.done.append(job)
            self.outcomes.add(job.order, job.seed, result["value"])
            self.tell(f"{job.order}, seed {job.seed}: {_value_words(result)} ({how})")
        if job.seed == self.question.seeds[0] and job.order == self.question.orders[0]:
            self._compare_repeat(job)

    def _compare_repeat(self, job: CommandJob) -> None:
        """Compare the first run with the one that has the same order and another {seed}, when both have ended."""
        first, again = (each.result() for each in (self._job(job.order, job.seed), self._repeat()))
        if first is None or again is None or not first["status"] == again["status"] == "finished":
            return
        if first["value"] == again["value"]:
            warning = (
                f"the script may ignore its seed: with {job.seed} and with {self._repeat().script_seed} for {{seed}}, "
                f"and with one order of the data, it ended with {digits(first['value'])}. Then all runs have the same "
                f"initial weights, and the interval says nothing about others"
            )
            self.warnings.append(warning)
            self.tell(f"Warning: {warning}.")

    def _repeat(self) -> CommandJob:
        """Return the first run with another {seed}."""
        job = self._job(self.question.orders[0], self.question.seeds[0])
        folder = self.home / "seed-check" / f"{folder_name(job.order)}-seed{job.seed}"
        return dataclasses.replace(job, folder=folder, script_seed=max(self.question.seeds) + 1)

    def answer(self, stopped: str | None) -> Answer:
        """Return the answer, if the runs can be compared."""
        pairs = self.outcomes.pairs()
        _check_alike([job for job in self.done if job.seed in pairs])
        seconds: dict[str, dict[int, float]] = {order: {} for order in self.question.orders}
        for job in self.done:
            seconds[job.order][job.seed] = (job.outcome() or {})["seconds"]
        return make_answer(
            self.question,
            self.outcomes.values,
            stopped,
            besides={"Seconds a run": seconds},
            warnings=[
                *self.outcomes.warnings(),
                *dict.fromkeys(self.warnings),
                *_leftovers(self.done),
                *optional_stopping(self.question, sorted(pairs), self.home / PAGE),
            ],
            proofs=_proofs(self.done),
        )


def _value_words(result: dict[str, Any]) -> str:
    return "diverged" if result["value"] is None else digits(result["value"])


def _check(command: str, metric: Metric, parallel: int) -> None:
    try:
        words = split_command(command)
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


def _leftovers(jobs: Sequence[CommandJob]) -> list[str]:
    """Return a warning of files that other runs have left where a run may have resumed from them."""
    found = [(job, path) for job in jobs for path in (job.outcome() or {}).get("leftovers", ())]
    if not found:
        return []
    job, path = found[0]
    more = len({each for _, each in found}) - 1
    others = f" and {more} more file{'s' if more > 1 else ''}" if more else ""
    return [
        f"{job.name} began where other runs had left {path}{others}: if the script resumes from what it finds, the "
        f"runs are not paired; have each write to {{folder}}"
    ]


def _check_alike(jobs: Sequence[CommandJob]) -> None:
    """Refuse runs of one seed whose loaders differ in more than the order."""
    by_seed: dict[int, dict[str, list[tuple[int, ...]]]] = {}
    for job in jobs:
        by_seed.setdefault(job.seed, {})[job.order] = _loaders(job).sizes()
    for seed, sizes in by_seed.items():
        if len(set(map(tuple, sizes.values()))) > 1:
            raise ValueError(
                f"the runs of seed {seed} should differ in the order only, but their loaders have (N, B, processes) "
                + ", ".join(f"{found} with {order}" for order, found in sizes.items())
            )


def _proofs(jobs: Sequence[CommandJob]) -> list[tuple[str, int, str]]:
    """Return what the first run of each order did to its loaders, as `replenish exec` reports it."""
    first: dict[str, CommandJob] = {}
    for job in jobs:
        first.setdefault(job.order, job)
    return [(job.order, job.seed, summary) for job in first.values() for summary in _loaders(job).summaries()]


def _loaders(job: CommandJob) -> RunRecords:
    outcome = job.outcome()
    assert outcome is not None
    return RunRecords(tuple(outcome["loaders"]))
