"""`compare_commands`: which order is better in a user's script, which needs no change."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from replenish.exec.records import RunRecords
from replenish.lab.atomic_files import held
from replenish.lab.comparing.answer import Answer, digits, make_answer
from replenish.lab.comparing.command_job import CommandJob, split_command
from replenish.lab.comparing.metric import JsonMetric, Metric
from replenish.lab.comparing.page import optional_stopping, write_page, write_record
from replenish.lab.comparing.question import Outcomes, Question
from replenish.lab.jobs import Execution
from replenish.lab.launch import launch
from replenish.lab.stopping import OutOfTimeError, Stopped, handling, raise_stopped
from replenish.orders.building import check_fittable, is_file, read_order

PAGE = "report.html"
#: Operators that only a shell understands.
SHELL_ONLY = frozenset(("&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1"))


class FailedError(Exception):
    """Runs failed, and the others would probably fail too."""


def compare_commands(
    command: str,
    metric: Metric,
    question: Question,
    execution: Execution | None = None,
    *,
    check: bool = True,
    tell: Callable[[str], None] | None = None,
) -> Answer:
    """Run a command with several orders over several seeds, and report which is better.

    Every run works as with `replenish exec`. Its folder records its output, exit code, seconds and metric.
    Runs that have ended are not repeated. The comparison raises an error if the script, a module of the user's that it
    imports or a file that the command names has changed since, or if they were started in another folder. The answer
    leaves out the runs that fail or diverge, and names them.

    Args:
        command: The command, with {seed} where the script takes its seed. It may also contain {order}, and
            {folder} for the run's own folder. A first word `python` is the Python that runs this.
        metric: Where a run's number is found.
        question: The orders, the seeds and the rule.
        execution: Where the runs are executed. A spent budget ends the current runs. Its hardware is not used, since
            the script decides what it uses.
        check: Whether to repeat one run with another {seed} and the same order, which shows whether the script uses
            its seed.
        tell: Called with a line for every run that has ended, and for every warning.

    Returns:
        The answer, with the path of its page.

    Raises:
        ChildProcessError: The first run failed, or an order had two more failures than finished runs.
        ValueError: Something cannot be compared, or the budget is too small for a single pair of runs.
        KeyboardInterrupt: Stopped; runs that have ended are kept.
    """
    execution = execution or Execution()
    for order in question.orders:
        check_fittable(order, {})
    _check(command, metric, execution.parallel)
    home = execution.runs / f"command-{hashlib.sha256(command.encode()).hexdigest()[:8]}"
    # Closing the terminal ends the runs too, unless the signal is ignored, as under `nohup`.
    ends = [signal.SIGTERM, *([signal.SIGHUP] if os.name == "posix" else [])]
    ends = [number for number in ends if signal.getsignal(number) is not signal.SIG_IGN]
    with held(home, "compares this command"), handling(raise_stopped, *ends):
        comparison = _Comparison(command, metric, question, execution, home, tell or (lambda line: None))
        comparison.run(check and len(question.seeds) > 1)
    answer = comparison.answer()
    write_page(answer, "A command of your own", (f"Command: {command}",), command=execution.command)
    write_record(answer, command=command)
    return answer


def _check(command: str, metric: Metric, parallel: int) -> None:
    try:
        words = split_command(command)
    except ValueError as error:
        raise ValueError(f"command should be one that a shell could read, but got {command!r}: {error}") from None
    if "{seed}" not in command:
        raise ValueError(
            f"command should have {{seed}} where the script takes its seed, or the runs of all seeds would be equal, "
            f"but got {command!r}"
        )
    odd = [word for place, word in enumerate(words) if word in SHELL_ONLY or (not place and re.match(r"\w+=", word))]
    if odd:
        raise ValueError(
            f"command should be a program and its arguments, since no shell runs it, but got {odd[0]}; for a line of a "
            f"shell write sh -c '...'"
        )
    if isinstance(metric, JsonMetric) and metric.is_shared and parallel > 1:
        raise ValueError(
            f"the JSON file should have {{folder}}, {{seed}} or {{order}} in its name, since {parallel} runs at once "
            f"would write the same, but got {metric.path}"
        )


class _Comparison:
    """The runs of one comparison, and their outcomes."""

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
        self._deadline = None if execution.budget is None else time.monotonic() + execution.budget
        begun = home / ".begun"  # when the first comparison of this command began, by the clock of the folder's disk
        if not begun.exists():
            begun.touch()
        self._jobs = {
            (order, seed): CommandJob(command, order, seed, home / name / f"seed{seed}", metric, begun.stat().st_mtime)
            for order in question.orders
            for name in [_folder_name(order)]
            for seed in question.seeds
        }
        #: The first run, and its repetition with the next {seed}; neither depends on the number of seeds.
        self._first = self._jobs[question.orders[0], question.seeds[0]]
        folder = home / "seed-check" / f"{_folder_name(self._first.order)}-seed{self._first.seed}-as-next"
        self._again = dataclasses.replace(self._first, folder=folder, script_seed=self._first.seed + 1)

    def run(self, check_seed: bool) -> None:
        """Execute the runs that have not ended."""
        waiting = [self._again] if check_seed else []

        def run_round(seeds: Sequence[int]) -> None:
            first, *others = [self._jobs[order, seed] for seed in seeds for order in self.question.orders]
            self._execute([first, *waiting, *others])
            waiting.clear()

        try:
            self.outcomes.run_until_decided(run_round, parallel=self.execution.parallel)
        except OutOfTimeError as reason:
            self.outcomes.stopped = str(reason)
            if not self.outcomes.pairs():
                raise ValueError(
                    f"budget should allow for one run of each order, but {self.execution.budget:g} s were not enough"
                ) from None
        except Stopped as stopped:
            message = "stopped; runs that had ended are kept, so give the same command again"
            raise Stopped(message, stopped.signal_number) from None
        except FailedError as error:
            raise ChildProcessError(str(error)) from None

    def _execute(self, jobs: Sequence[CommandJob]) -> None:
        left = []
        for job in jobs:
            if (result := job.ended()) is None:
                left.append(job)
            else:
                job.check_sources()
                self._add(job, result, "finished before")

        def watch(place: int, event: dict[str, Any]) -> None:
            if event["event"] == "end":
                self._add(left[place], event["result"], f"{event['result'].get('seconds', 0.0):.1f} s")
            elif event["event"] in ("warning", "stopped"):
                self.tell(event["message"])

        launch(left, self.execution.parallel, watch, self._deadline)

    def _add(self, job: CommandJob, result: dict[str, Any], how: str) -> None:
        """Record and report the outcome of a run."""
        failed = result["status"] == "failed"
        name = f"{job.order}, seed {job.seed}"
        if job is self._again:
            name += f" with {job.script_seed} for {{seed}}"
        elif failed:
            if not self.outcomes.fail(job.order, job.seed, result["message"]):
                raise FailedError(result["message"])
            self.tell(f"{name}: failed; the others continue")
        else:
            if self.done:
                job.check_pair(self.done[0])
            self.done.append(job)
            self.outcomes.add(job.order, job.seed, result["value"])
        if not failed:
            value = "diverged" if result["value"] is None else digits(result["value"])
            self.tell(f"{name}: {value} ({how})")
        if job in (self._first, self._again):
            self._compare_repeated()

    def _compare_repeated(self) -> None:
        """Warn if the first run and its repetition with another {seed} have ended with the same number."""
        first, again = (job.result() or {} for job in (self._first, self._again))
        if first.get("status") == again.get("status") == "finished" and first["value"] == again["value"]:
            warning = (
                f"the script may ignore its seed: with {self._first.seed} and with {self._again.script_seed} for "
                f"{{seed}}, and with one order of the data, it ended with {digits(first['value'])}. Then all runs have "
                f"the same initial weights, and the interval says nothing about others"
            )
            self.warnings.append(warning)
            self.tell(f"Warning: {warning}.")

    def answer(self) -> Answer:
        """Return the answer; raise if the runs cannot be compared."""
        records = {job: job.outcome() or {} for job in self.done}
        loaders = {job: RunRecords(tuple(record["loaders"])) for job, record in records.items()}
        pairs = self.outcomes.pairs()
        _check_alike({job: found for job, found in loaders.items() if job.seed in pairs})
        seconds: dict[str, dict[int, float]] = {order: {} for order in self.question.orders}
        for job, record in records.items():
            seconds[job.order][job.seed] = record["seconds"]
        first: dict[str, CommandJob] = {}
        for job in self.done:
            first.setdefault(job.order, job)
        return make_answer(
            self.outcomes,
            besides={"Seconds per run": seconds},
            warnings=[
                *self.warnings,
                *_leftovers({job: record.get("leftovers", []) for job, record in records.items()}),
                *optional_stopping(self.question, sorted(pairs), self.home / PAGE),
            ],
            proofs=[(job.order, job.seed, summary) for job in first.values() for summary in loaders[job].summaries()],
            page=self.home / PAGE,
        )


def _folder_name(order: str) -> str:
    """Return the name of the folder of an order's runs; for a config file it depends on the file's content."""
    if not is_file(order):
        return order
    config = json.dumps(read_order(order).config(), sort_keys=True)
    return f"{Path(order).stem}-{hashlib.sha256(config.encode()).hexdigest()[:8]}"


def _leftovers(by_job: dict[CommandJob, list[str]]) -> list[str]:
    """Return a warning if a run may have resumed from files that other runs left."""
    found = [(job, path) for job, paths in by_job.items() for path in paths]
    if not found:
        return []
    job, path = found[0]
    more = len({each for _, each in found}) - 1
    others = f" and {more} more file{'s' if more > 1 else ''}" if more else ""
    return [
        f"{job.name} began where other runs had left {path}{others}: if the script resumes from what it finds, the "
        f"runs are not paired; have each write to {{folder}}"
    ]


def _check_alike(loaders: dict[CommandJob, RunRecords]) -> None:
    """Raise if the runs of one seed have loaders that differ in more than the order."""
    by_seed: dict[int, dict[str, list[tuple[int, ...]]]] = {}
    for job, records in loaders.items():
        by_seed.setdefault(job.seed, {})[job.order] = records.sizes()
    for seed, sizes in by_seed.items():
        if len(set(map(tuple, sizes.values()))) > 1:
            raise ValueError(
                f"the runs of seed {seed} should differ in the order only, but their loaders have (N, B, processes) "
                + ", ".join(f"{found} with {order}" for order, found in sizes.items())
            )
