"""Reads run folders back: any folder with a `config.json`, at any depth."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.lab.config import RunConfig
from replenish.lab.records import CONFIG, METRICS, RESULT

STATUSES = ("finished", "diverged")
_MEASURED = ("learning_rate", "train_loss", "test_loss", "test_error", "unseen", "seconds")


@dataclass(frozen=True)
class RunRecord:
    """One run as its folder tells it.

    Attributes:
        path: The folder, relative to the directory that was read, with forward slashes; "." for that itself.
        config: What was run.
        metrics: A dict for each effective epoch, in their order; what is not a finite number there is None.
        result: How it ended, or None if it has not.
    """

    path: str
    config: RunConfig
    metrics: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None

    @property
    def status(self) -> str:
        """`finished`, `diverged` or `unfinished`."""
        return "unfinished" if self.result is None else str(self.result["status"])

    @property
    def last_epoch(self) -> int:
        """The last effective epoch with a line of metrics; 0 for none."""
        return int(self.metrics[-1]["epoch"]) if self.metrics else 0


def read_runs(directory: str | os.PathLike[str]) -> list[RunRecord]:
    """Return every run below a directory, in the order of their paths; an empty list if there is none.

    Args:
        directory: Where the runs are; checkpoints, locks and other files there are left alone.

    Raises:
        OSError: The directory or a file in it cannot be read.
        ValueError: A file is garbled. Only the last line of a run that has not ended may be torn.
    """
    root = Path(directory)
    if not root.exists():
        raise FileNotFoundError(f"there is no directory {root}; give the one that `replenish run` wrote its runs to")
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is a file, and should be the directory that `replenish run` wrote to")
    records = [read_run(root, path.parent) for path in root.rglob(CONFIG) if path.is_file()]
    return sorted(records, key=lambda record: record.path)


def read_run(root: Path, folder: Path) -> RunRecord:
    """Return the run of one folder, with its path relative to `root`; errors as for `read_runs`."""
    config_path = folder / CONFIG
    values = _parsed(config_path, _text(config_path))
    try:
        config = RunConfig.from_dict(_object(config_path, values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{config_path} is not the config of a run: {error}") from None
    result = None
    if (folder / RESULT).exists():
        result = _checked_result(folder / RESULT)
    metrics = _read_metrics(folder / METRICS, ended=result is not None)
    return RunRecord(folder.relative_to(root).as_posix(), config, metrics, result)


def _checked_result(path: Path) -> dict[str, Any]:
    result = _object(path, _parsed(path, _text(path)))
    if result.get("status") not in STATUSES:
        raise ValueError(f"{path} should have a status of finished or diverged, but has {result.get('status')!r}")
    if result["status"] == "finished" and finite(result.get("test_error")) is None:
        raise ValueError(
            f"{path} is of a finished run and should have a test_error, but has {result.get('test_error')!r}"
        )
    return result


def _read_metrics(path: Path, *, ended: bool) -> tuple[dict[str, Any], ...]:
    if not path.exists():
        return ()
    lines = _text(path).splitlines()
    by_epoch: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            values = _object(path, _parsed(path, line, number))
        except ValueError:
            if number == len(lines) and not ended:
                break  # the run was stopped while it wrote this line
            raise
        epoch = values.get("epoch")
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"line {number} of {path} should have an effective epoch, but has {epoch!r}")
        values.update({name: finite(values[name]) for name in _MEASURED if name in values})
        by_epoch[epoch] = values  # a run that went on from an older checkpoint measured an epoch again
    return tuple(by_epoch[epoch] for epoch in sorted(by_epoch))


def finite(value: object) -> float | None:
    """Return a number, or None for what is none: a missing value, text, an infinity, NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} should hold text, but is garbled; remove that folder or run it again") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error.strerror or error}") from None


def _parsed(path: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        where = f"line {line} of {path}" if line else str(path)
        raise ValueError(f"{where} should hold JSON, but is garbled; remove that folder or run it again") from None


def _object(path: Path, values: object) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds {type(values).__name__}")
    return values
