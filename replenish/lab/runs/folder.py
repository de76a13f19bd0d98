"""A run's folder: its files, which are written whole or not at all, its lock, and how it is read."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import check_runs_folder, held, write_atomically
from replenish.lab.config import RunConfig
from replenish.lab.runs.checkpoints import Checkpoints

CONFIG, METRICS, RESULT = "config.json", "metrics.jsonl", "result.json"
#: The ways in which a run can end.
STATUSES = ("finished", "diverged")
#: The field of a result that holds the SHA-256 of the config, the metrics and the result itself without it.
SEAL = "sha256"


def folder_of(config: RunConfig, runs_dir: str | Path) -> Path:
    """Return the folder of a run: a subfolder for its seed in the folder of its config."""
    return Path(runs_dir) / config.slug / f"seed{config.seed}"


class RunFolder:
    """The folder of one run, which is made when the run starts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path)

    @contextmanager
    def owned_by(self, config: RunConfig) -> Iterator[None]:
        """Lock the folder for a run of `config`.

        Raises:
            BlockingIOError: Another process is training there. A lock ends with its process, even if it is killed.
            ValueError: The folder belongs to another config.
        """
        with held(self.path, "is training"):
            self.claim(config)
            yield

    def claim(self, config: RunConfig) -> None:
        """Write `config.json`, or refuse a folder that belongs to another config."""
        self.check(config)
        if not (self.path / CONFIG).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path / CONFIG, _json(config.to_dict()))

    def check(self, config: RunConfig) -> None:
        """Refuse a folder that belongs to another config, or a run without its config; nothing is written."""
        if not (self.path / CONFIG).exists():
            if any(self.path.glob("*.pt")) or (self.path / RESULT).exists():
                raise ValueError(f"{self.path} holds a run without its {CONFIG}; give another folder")
        elif differing := self.config().differences(config):
            fields = "; ".join(
                f"{name} is {there!r:.60} there and {here!r:.60} here" for name, (there, here) in differing.items()
            )
            raise ValueError(f"{self.path} is the folder of a run of another config: {fields}")

    def is_run(self) -> bool:
        """Return whether the folder's `config.json` belongs to a run, and not to another program.

        A garbled file counts as a run's, so that it is reported and not skipped.
        """
        if any((self.path / name).exists() for name in (METRICS, RESULT)):
            return True
        try:
            values = json.loads((self.path / CONFIG).read_bytes())
        except (OSError, ValueError, RecursionError):
            return True
        return not isinstance(values, dict) or {"dataset", "order", "seed"} <= values.keys()

    def config(self) -> RunConfig:
        """Return the config that the folder was made for."""
        path = self.path / CONFIG
        try:
            return RunConfig.from_dict(_object(path, _text(path)))
        except (TypeError, KeyError) as error:
            raise ValueError(f"{path} should hold the config of a run, but: {error}") from None
        except ValueError as error:
            message = str(error)
            if str(path) in message:
                raise
            raise ValueError(f"{path} should hold a run's config, but: {message}") from None

    def metrics(self) -> tuple[dict[str, Any], ...]:
        """Return the line of every effective epoch, in order; values that are not finite numbers are None.

        A garbled line is an error. Only the last line of a run that has not ended may be incomplete.
        """
        path = self.path / METRICS
        if not path.exists():
            return ()
        lines = _text(path).splitlines()
        by_epoch: dict[int, dict[str, Any]] = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = _object(path, line, number)
            except ValueError:
                if number == len(lines) and not (self.path / RESULT).exists():
                    break  # the run was stopped while it wrote this line
                raise
            epoch = values.get("epoch")
            if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
                raise ValueError(f"line {number} of {path} should have an effective epoch, but has {epoch!r:.60}")
            numbers = {name: finite(value) for name, value in values.items() if name != "epoch"}
            by_epoch[epoch] = {"epoch": epoch, **numbers}  # a run may have measured an epoch again
        return tuple(by_epoch[epoch] for epoch in sorted(by_epoch))

    def result(self) -> dict[str, Any] | None:
        """Return how the run ended, or None if it has not. A run has ended if and only if it has a result.

        A garbled result is an error, and so is a folder that was changed after the run had ended.
        """
        path = self.path / RESULT
        if not path.exists():
            return None
        result = _object(path, _text(path))
        if result.get("status") not in STATUSES:
            raise ValueError(
                f"{path} should have a status of finished or diverged, but has {result.get('status')!r:.60}"
            )
        if result["status"] == "finished" and finite(result.get("test_error")) is None:
            raise ValueError(
                f"{path} is of a finished run and should have a test_error, but has {result.get('test_error')!r:.60}"
            )
        seal = result.pop(SEAL, None)  # the first records have none
        if seal is not None and seal != (found := self._seal(result)):
            sealed = seal if isinstance(seal, dict) else {}
            altered = [name for name in (CONFIG, METRICS, RESULT) if sealed.get(name) != found.get(name)]
            raise ValueError(
                f"{', '.join(altered)} in {self.path} was changed after the run had ended (its checksum is another); "
                f"remove that folder, or run it again"
            )
        return result

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Record how the run ended, with checksums of the record; remove the older checkpoint."""
        write_atomically(self.path / RESULT, _json({**result, SEAL: self._seal(result)}))
        self.checkpoints.forget_previous()

    def write_metrics(self, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of all epochs so far. The file is replaced, so that no line is incomplete or repeated."""
        write_atomically(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in metrics).encode())

    def _seal(self, result: Mapping[str, Any]) -> dict[str, str]:
        files = {name: self.path / name for name in (CONFIG, METRICS)}
        contents = {name: _content(path) for name, path in files.items() if path.exists()}
        contents[RESULT] = json.dumps(dict(result), sort_keys=True).encode()
        return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


@dataclass(frozen=True)
class RunRecord:
    """One run, read from its folder.

    Attributes:
        path: The folder, relative to the directory that was read, with forward slashes; "." for the directory itself.
        config: The run's config.
        metrics: A dict for each effective epoch, in order; values that are not finite numbers are None.
        result: The run's result, or None if it has not ended.
    """

    path: str
    config: RunConfig
    metrics: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None

    @property
    def status(self) -> str:
        """`finished`, `diverged` or `unfinished`."""
        return "unfinished" if self.result is None else str(self.result["status"])

    def field(self, name: str) -> Any:
        """Return a field of the result; None if it has no such field, or the run has not ended."""
        return (self.result or {}).get(name)

    def number(self, name: str) -> float | None:
        """Return a number of the result; None if it is missing or not finite."""
        return finite(self.field(name))

    @property
    def last_epoch(self) -> int:
        """The last effective epoch with a line of metrics; 0 for none."""
        return int(self.metrics[-1]["epoch"]) if self.metrics else 0


def read_runs(directory: str | os.PathLike[str]) -> list[RunRecord]:
    """Return every run below a directory, in the order of their paths; an empty list if there is none.

    Args:
        directory: Where the runs are. Checkpoints, locks and files of other programs are ignored.

    Raises:
        OSError: The directory or a file in it cannot be read.
        ValueError: A file is garbled. Only the last line of a run that has not ended may be incomplete.
    """
    root = Path(directory)
    check_runs_folder(root)
    folders = [path.parent for path in root.rglob(CONFIG) if path.is_file() and RunFolder(path.parent).is_run()]
    return sorted((read_run(root, folder) for folder in folders), key=lambda record: record.path)


def read_run(root: Path, folder: Path) -> RunRecord:
    """Return the run of one folder, with its path relative to `root`; errors as for `read_runs`."""
    run = RunFolder(folder)
    return RunRecord(folder.relative_to(root).as_posix(), run.config(), run.metrics(), run.result())


def finite(value: object) -> float | None:
    """Return a finite number as it is, and None for anything else: a missing value, text, an infinity, NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _json(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or error}") from None


def _text(path: Path) -> str:
    try:
        return _content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} should hold text, but is garbled; remove that folder or run it again") from None


def _object(path: Path, text: str, line: int | None = None) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        where = f"line {line} of {path}" if line else str(path)
        raise ValueError(f"{where} should hold JSON, but is garbled; remove that folder or run it again") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds {type(values).__name__}")
    return values
