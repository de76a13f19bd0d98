"""One run of a command with an order: a folder of its own with its output, its exit code, its time and its loaders."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.exec.environment import OrderRequest
from replenish.exec.records import RunRecords, read_records
from replenish.exec.sources import NamedFiles, changed_sources, differing_sources, find_leftovers, read_sources
from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.metric import Metric, filled, last_lines

OUTCOME, LOADERS = "outcome.json", "loaders"
SECONDS_BETWEEN_LOOKS = 0.05
#: How long a command that is asked to end may take.
SECONDS_TO_END = 10.0
_APART = "keep those runs apart, with another folder for runs, or remove them"


class StoppedError(Exception):
    """A run was ended before its time."""


@dataclass(frozen=True)
class CommandRun:
    """A command, with {seed} and perhaps {order} and {folder} in it, with one order, one seed, a folder of its own."""

    command: str
    order: str
    seed: int
    folder: Path
    since: float = math.inf  # when the first run of the comparison began, by the clock of the folder's disk

    @property
    def placeholders(self) -> dict[str, str]:
        """What stands for the words in braces."""
        return {"seed": str(self.seed), "order": self.order, "folder": str(self.folder)}

    def words(self) -> list[str]:
        """Return the command's words; `python` is the Python that runs this."""
        words = self._filled()
        return [sys.executable if words[0] in ("python", "python3") else words[0], *words[1:]]

    def _filled(self) -> list[str]:
        return [filled(word, self.placeholders) for word in shlex.split(self.command)]

    def outcome(self) -> dict[str, Any] | None:
        """Return how the run ended if it has finished; one that failed is run again."""
        path = self.folder / OUTCOME
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text())
            return found if found["exit_code"] == 0 and found["replaced"] else None
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path} should say how a run ended, but cannot be read; remove {self.folder}") from None

    def check_sources(self) -> None:
        """Refuse a run that has finished if what it ran has changed since: it would be no pair of a run of now."""
        outcome = self.outcome()
        assert outcome is not None
        if (before := outcome.get("started_in", os.getcwd())) != os.getcwd():
            raise ValueError(
                f"{self.folder} holds a run that was started in {before}, but this is {os.getcwd()}, where the command "
                f"may mean other files; {_APART}"
            )
        if changed := changed_sources(outcome.get("sources", {})):
            raise ValueError(f"{self.folder} holds a run from before {changed[0]} was changed; {_APART}")

    def check_pair(self, other: CommandRun) -> None:
        """Refuse two runs that have finished if something was changed between them."""
        own, its = self.outcome(), other.outcome()
        assert own is not None
        assert its is not None
        if differing := differing_sources(its.get("sources", {}), own.get("sources", {})):
            raise ValueError(
                f"{differing[0]} was changed between the runs in {other.folder} and {self.folder}, which so differ in "
                f"more than the order; {_APART}"
            )

    def value(self, metric: Metric) -> float:
        """Return the metric of the run, which has finished, now or at an earlier call."""
        outcome = self.outcome()
        assert outcome is not None
        if outcome["metric"] is not None and outcome["metric"]["described"] == metric.described:
            return float(outcome["metric"]["value"])
        return metric.read(self.folder, self.placeholders, None)

    def execute(self, metric: Metric, stop: threading.Event) -> None:
        """Run the command to its end, or until `stop` is set, and record it.

        Raises:
            StoppedError: It was ended.
            ChildProcessError: It failed, or did not use the order.
            ValueError: It has no metric; the run itself is kept.
        """
        _go_on(stop)
        if self.folder.exists():
            shutil.rmtree(self.folder)  # of a run that failed or was stopped
        (self.folder / LOADERS).mkdir(parents=True)
        records = (self.folder / LOADERS).absolute()
        others = (self.since, records.stat().st_mtime)
        leftovers = find_leftovers(os.getcwd(), *others, apart=str(self.folder.absolute().parents[2]))
        request = OrderRequest(self.order, self.seed, str(records))
        named = NamedFiles(self._filled())
        begun, clock = time.time(), time.monotonic()
        exit_code = self._run_process(request.environment(), stop)
        made = read_records(records)
        outcome = {
            "exit_code": exit_code,
            "seconds": time.monotonic() - clock,
            "replaced": made.replaced,
            "loaders": list(made.loaders),
            "sources": {**named.after_the_run(), **read_sources(records)},
            "leftovers": leftovers,
            "started_in": os.getcwd(),
            "command": self.words(),
            "metric": None,
        }
        self._write(outcome)
        self._check(exit_code, made)
        value = metric.read(self.folder, self.placeholders, begun)
        self._write({**outcome, "metric": {"described": metric.described, "value": value}})

    def _write(self, outcome: dict[str, Any]) -> None:
        write_atomically(self.folder / OUTCOME, (json.dumps(outcome, indent=2) + "\n").encode())

    def _run_process(self, environment: dict[str, str], stop: threading.Event) -> int:
        words = self.words()
        with (self.folder / "stdout.txt").open("wb") as out, (self.folder / "stderr.txt").open("wb") as err:
            try:
                # A session of its own, so that all its processes can be ended together.
                process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
                )
            except OSError as error:
                raise ValueError(f"the command should begin with a program, but {words[0]}: {error.strerror}") from None
            try:
                while process.poll() is None:
                    stop.wait(SECONDS_BETWEEN_LOOKS)
                    _go_on(stop)
            finally:
                _end(process)
        return process.returncode

    def _check(self, exit_code: int, records: RunRecords) -> None:
        name = f"the run of {self.order} with seed {self.seed}"
        if exit_code != 0:
            how = f"exit code {exit_code}" if exit_code > 0 else f"signal {signal.Signals(-exit_code).name}"
            raise ChildProcessError(
                f"{name} ended with {how} ({self.folder}); it printed last:\n{last_lines(self.folder)}"
            )
        if not records.replaced:
            raise ChildProcessError(
                f"{name} did not use the order, so that there is nothing to compare: {records.why_nothing()}"
            )


def _go_on(stop: threading.Event) -> None:
    """Raise if a run is to end."""
    if stop.is_set():
        raise StoppedError("it was stopped")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, if it has not ended: gently at first."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        _send(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
        _send(process, signal.SIGKILL)  # to those as well that have not ended with it
    else:
        process.kill()
    process.wait()


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all have ended; the latter is what macOS says then
        os.killpg(process.pid, number)
