"""A run's folder: what it holds, how it is written so that nothing is ever half there, and who may write to it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import held, write_atomically
from replenish.lab.config import RunConfig
from replenish.lab.runs.checkpoints import Checkpoints

CONFIG, METRICS, RESULT = "config.json", "metrics.jsonl", "result.json"
#: How a run can have ended.
STATUSES = ("finished", "diverged")
#: The field of a result that holds the SHA-256 of the config, the metrics and the result itself without it.
SEAL = "sha256"


def folder_of(config: RunConfig, runs_dir: str | Path) -> Path:
    """Return the folder of a run: one for its config, and in it one for its seed."""
    return Path(runs_dir) / config.slug / f"seed{config.seed}"


class RunFolder:
    """The folder of one run; it is made when the run starts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.checkpoints = Checkpoints(self.path)

    @contextmanager
    def owned_by(self, config: RunConfig) -> Iterator[None]:
        """Hold the folder for a run of `config`: no other process may, and no other config.

        Raises:
            BlockingIOError: Another process is training there. The lock ends with its process, however that ends.
            ValueError: The folder is of another config.
        """
        with held(self.path, "is training"):
            self.claim(config)
            yield

    def claim(self, config: RunConfig) -> None:
        """Write `config.json`, or refuse a folder that another config has."""
        self.check(config)
        if not (self.path / CONFIG).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path / CONFIG, _json(config.to_dict()))

    def check(self, config: RunConfig) -> None:
        """Refuse a folder that another config has, or a run without its config; nothing is written."""
        if not (self.path / CONFIG).exists():
            if any(self.path.glob("*.pt")) or (self.path / RESULT).exists():
                raise ValueError(f"{self.path} holds a run without its {CONFIG}; give another folder")
        elif differing := self.config().differences(config):
            fields = "; ".join(
                f"{name} is {there!r:.60} there and {here!r:.60} here" for name, (there, here) in differing.items()
            )
            raise ValueError(f"{self.path} is the folder of a run of another config: {fields}")

    def is_run(self) -> bool:
        """Tell whether the folder's `config.json` is a run's, and not of another program that has such a file too.

        What is garbled counts as a run's, so that it is told of and not passed over.
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
            told = str(error)
            raise ValueError(told if str(path) in told else f"{path} should hold a run's config, but: {told}") from None

    def metrics(self) -> tuple[dict[str, Any], ...]:
        """Return the line of every effective epoch, in their order; what is not a finite number there is None.

        A garbled line is refused; only the last of a run that has not ended may be torn.
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
        """Return how the run ended, or None if it has not: the one answer to whether a run is finished.

        A garbled result is refused, and a folder in which something was changed after the run had ended.
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
            altered = [name for name in found if not isinstance(seal, dict) or seal.get(name) != found[name]]
            raise ValueError(
                f"{', '.join(altered)} in {self.path} was changed after the run had ended (its checksum is another); "
                f"remove that folder, or run it again"
            )
        return result

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Record how the run ended, with checksums of all that is recorded; the older checkpoint goes."""
        write_atomically(self.path / RESULT, _json({**result, SEAL: self._seal(result)}))
        self.checkpoints.forget_previous()

    def write_metrics(self, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of all epochs so far; the file is replaced, so that no line is ever torn or repeated."""
        write_atomically(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in metrics).encode())

    def _seal(self, result: Mapping[str, Any]) -> dict[str, str]:
        files = {name: self.path / name for name in (CONFIG, METRICS)}
        contents = {name: _content(path) for name, path in files.items() if path.exists()}
        contents[RESULT] = json.dumps(dict(result), sort_keys=True).encode()
        return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def finite(value: object) -> float | None:
    """Return a number, or None for what is none: a missing value, text, an infinity, NaN."""
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
