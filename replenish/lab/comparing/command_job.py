"""One run of a command with an order, as a job. Its folder has the output, exit code, time, loaders and metric."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.exec.environment import OrderRequest, run_environment
from replenish.exec.records import RunRecords, read_records
from replenish.exec.sources import NamedFiles, changed_sources, differing_sources, find_leftovers, read_sources
from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.metric import JsonMetric, Metric, OutputMetric, filled, last_lines
from replenish.lab.config import Hardware
from replenish.lab.stopping import handling, raise_stopped
from replenish.orders.building import is_file

OUTCOME, LOADERS = "outcome.json", "loaders"
SECONDS_BETWEEN_LOOKS = 0.05
#: How long a command may take to end after SIGTERM.
SECONDS_TO_END = 10.0
_APART = "keep those runs apart, with another folder for runs, or remove them"


def split_command(command: str, windows: bool = os.name == "nt") -> list[str]:
    r"""Return the words of a command as its shell reads them; on Windows a backslash is part of a path.

    Example:
        >>> split_command(r'python C:\new\train.py "a b"', windows=True)
        ['python', 'C:\\new\\train.py', 'a b']
    """
    if not windows:
        return shlex.split(command)
    words = shlex.split(command, posix=False)
    return [word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in words]


@dataclass(frozen=True)
class CommandJob:
    """One run of a command, with one order, one seed and one folder.

    Attributes:
        command: The command, which contains {seed} and perhaps {order} and {folder}.
        order: The order of its loaders.
        seed: The seed of the order, and of the script.
        folder: Where the run is recorded.
        metric: Where the run's number is found.
        since: When the first run of the comparison began, by the clock of the folder's disk; None if not known.
        script_seed: The value of {seed}, if it is not the order's seed.
    """

    command: str
    order: str
    seed: int
    folder: Path
    metric: Metric
    since: float | None = None
    script_seed: int | None = None

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        return f"the run of {self.order} with seed {self.seed}"

    @property
    def placeholders(self) -> dict[str, str]:
        """The values of {seed}, {order} and {folder}."""
        seed = self.seed if self.script_seed is None else self.script_seed
        return {"seed": str(seed), "order": self.order, "folder": str(self.folder)}

    @property
    def hardware(self) -> Hardware:
        """No GPUs are set aside for a command, which takes the devices that it wants."""
        return Hardware("cpu")

    def environment(self) -> dict[str, str]:
        """Return nothing: the command decides its own threads."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the module whose `job_from` reads them."""
        return {"module": __name__, **dataclasses.asdict(self), "folder": str(self.folder)}

    def outcome(self) -> dict[str, Any] | None:
        """Return the run's record; None if the run has not ended."""
        path = self.folder / OUTCOME
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text())
            return found if isinstance(found["exit_code"], int) and isinstance(found["replaced"], bool) else None
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path} should record how a run ended, but is garbled; remove {self.folder}") from None

    def result(self) -> dict[str, Any] | None:
        """Return how the run ended: finished with a value, diverged, or failed with a message; None if it has not."""
        outcome = self.outcome()
        if outcome is None:
            return None
        if fault := self._fault(outcome):
            return {"status": "failed", "message": fault}
        measured = outcome["metric"]
        if measured is None or measured["described"] != self.metric.described:  # the metric has changed since
            try:
                measured = self._measure(None)
            except ValueError as error:
                return {"status": "failed", "message": str(error)}
        status = "diverged" if measured["value"] is None else "finished"
        return {"status": status, "value": measured["value"], "seconds": outcome["seconds"]}

    def ended(self) -> dict[str, Any] | None:
        """Return how the run ended. If the command failed, remove the record instead, to run it again."""
        outcome = self.outcome()
        if outcome is not None and self._fault(outcome):
            (self.folder / OUTCOME).unlink()
        return self.result()

    def check_sources(self) -> None:
        """Raise if the files of a run that has ended have changed since: it cannot be paired with new runs."""
        outcome = self.outcome() or {}
        if (before := outcome.get("started_in", os.getcwd())) != os.getcwd():
            raise ValueError(
                f"{self.folder} holds a run that was started in {before}, but this is {os.getcwd()}, where the command "
                f"may mean other files; {_APART}"
            )
        if changed := changed_sources(outcome.get("sources", {})):
            raise ValueError(f"{self.folder} holds a run from before {changed[0]} was changed; {_APART}")

    def check_pair(self, other: CommandJob) -> None:
        """Raise if a file was changed between two runs that have ended."""
        own, its = ((job.outcome() or {}).get("sources", {}) for job in (self, other))
        if differing := differing_sources(its, own):
            raise ValueError(
                f"{differing[0]} was changed between the runs in {other.folder} and {self.folder}, which so differ in "
                f"more than the order; {_APART}"
            )

    def run(self, watch: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
        """Run the command to its end here and now, record the run, and return how it ended.

        Raises:
            ValueError: The command does not begin with a program.
            KeyboardInterrupt: Stopped by a signal; this ends the command's processes, as does an error of `watch`.
        """
        if self.folder.exists():  # of a run that failed or was stopped
            shutil.rmtree(self.folder)
        records = (self.folder / LOADERS).absolute()
        records.mkdir(parents=True)
        now = records.stat().st_mtime
        all_runs = str(self.folder.absolute().parents[2])
        leftovers = [] if self.since is None else find_leftovers(os.getcwd(), self.since, now, ignored=all_runs)
        # An absolute path, since the script may change the working folder.
        order = os.path.abspath(self.order) if is_file(self.order) else self.order
        request = OrderRequest(order, self.seed, str(records))
        words = [filled(word, self.placeholders) for word in split_command(self.command)]
        named = NamedFiles(words)
        if words[0] in ("python", "python3"):
            words[0] = sys.executable  # the Python that runs this
        begun, clock = time.time(), time.monotonic()
        watch = watch or (lambda event: None)
        with handling(raise_stopped, signal.SIGTERM):
            exit_code = self._run_process(words, run_environment(request), watch)
        made = read_records(records)
        outcome: dict[str, Any] = {
            "exit_code": exit_code,
            "seconds": time.monotonic() - clock,
            "replaced": made.replaced,
            "loaders": list(made.loaders),
            "sources": {**named.after_the_run(), **read_sources(records)},
            "leftovers": leftovers,
            "started_in": os.getcwd(),
            "command": words,
            "metric": None,
        }
        if not self._fault(outcome):
            with suppress(ValueError):  # `result` reports it
                outcome["metric"] = self._measure(begun)
        write_atomically(self.folder / OUTCOME, (json.dumps(outcome, indent=2) + "\n").encode())
        result = self.result()
        assert result is not None
        watch({"event": "end", "result": result})
        return result

    def _measure(self, begun: float | None) -> dict[str, Any]:
        """Return the metric as the run's record has it, with the value None if the run diverged."""
        value = self.metric.read(self.folder, self.placeholders, begun)
        return {"described": self.metric.described, "value": value if math.isfinite(value) else None}

    def _run_process(
        self, words: list[str], environment: dict[str, str], watch: Callable[[dict[str, Any]], None]
    ) -> int:
        with (self.folder / "stdout.txt").open("wb") as out, (self.folder / "stderr.txt").open("wb") as err:
            try:
                # In a new session, so that all its processes can be ended together.
                process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
                )
            except OSError as error:
                raise ValueError(f"the command should begin with a program, but {words[0]}: {error.strerror}") from None
            try:
                while process.poll() is None:
                    time.sleep(SECONDS_BETWEEN_LOOKS)
                    watch({"event": "beat"})
            finally:
                _end(process)
        return process.returncode

    def _fault(self, outcome: dict[str, Any]) -> str:
        """Return why a run that has ended failed, with the last lines that it printed; "" if it did not fail."""
        exit_code = outcome["exit_code"]
        if exit_code != 0:
            how = f"exit code {exit_code}" if exit_code > 0 else f"signal {signal.Signals(-exit_code).name}"
            return f"{self.name} ended with {how} ({self.folder}); it printed last:\n{last_lines(self.folder)}"
        if outcome["replaced"]:
            return ""
        why = RunRecords(tuple(outcome["loaders"])).why_nothing()
        if not outcome["loaders"] and not any((self.folder / LOADERS).glob("*.sources")):
            why = (
                "no Python process of it loaded replenish's hook; leave out the options -I, -E and -S of python, which "
                "hide the hook"
            )
        return f"{self.name} did not use the order, so that there is nothing to compare: {why}"


def job_from(values: dict[str, Any]) -> CommandJob:
    """Return the job that `to_dict` wrote."""
    metric = OutputMetric(**values["metric"]) if "pattern" in values["metric"] else JsonMetric(**values["metric"])
    return CommandJob(**{**values, "folder": Path(values["folder"]), "metric": metric})


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and the processes that it has started, by SIGTERM and then by SIGKILL."""
    if process.poll() is not None:
        return
    if os.name == "posix":
        _send(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_END)
        _send(process, signal.SIGKILL)  # for processes that are still running
    else:
        process.kill()
    process.wait()


def _send(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all have ended; macOS raises the latter
        os.killpg(process.pid, number)
