"""A run's folder: what it holds, how it is written so that nothing is ever half there, and who may write to it.

config.json              what is run
metrics.jsonl            a line an effective epoch
checkpoint.pt            where the run stands, and checkpoint-previous.pt, the one before
result.json              how it ended; a folder without it is a run that has not ended
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replenish.lab.config import RunConfig
from replenish.lab.whole_files import flush_folder, not_written, write_flushed, write_whole

CONFIG, METRICS, RESULT = "config.json", "metrics.jsonl", "result.json"
CHECKPOINT, PREVIOUS_CHECKPOINT = "checkpoint.pt", "checkpoint-previous.pt"
#: A zip file ends with the length of its comment; torch writes none. The seal is a SHA-256 in hexadecimal.
NO_COMMENT, SEAL_LENGTH = bytes(2), 64


class RunFolder:
    """The folder of one run.

    Args:
        path: The folder; it is made when the run starts.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._last_is_damaged = False

    @contextmanager
    def owned_by(self, config: RunConfig) -> Iterator[None]:
        """Hold the folder for a run of `config`: no other process may, and no other config.

        Raises:
            BlockingIOError: Another process is training there. The lock ends with its process, however that ends.
            ValueError: The folder is of another config.
        """
        from filelock import FileLock, Timeout

        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise BlockingIOError(f"another process is training in {self.path}; wait for it or stop it") from None
        try:
            self.claim(config)
            yield
        finally:
            lock.release()

    def claim(self, config: RunConfig) -> None:
        """Write `config.json`, or refuse a folder that another config has."""
        self.check(config)
        if not (self.path / CONFIG).exists():
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / CONFIG, _json(config.to_dict()))

    def check(self, config: RunConfig) -> None:
        """Refuse a folder that another config has; nothing is written.

        Raises:
            ValueError: It has another, or a run without its config.
        """
        if not (self.path / CONFIG).exists():
            if any(self.path.glob("*.pt")) or (self.path / RESULT).exists():
                raise ValueError(f"{self.path} holds a run without its {CONFIG}; give another folder")
        elif differing := self.config().differences(config):
            fields = "; ".join(
                f"{name} is {there!r} there and {here!r} here" for name, (there, here) in differing.items()
            )
            raise ValueError(f"{self.path} is the folder of a run of another config: {fields}")

    def config(self) -> RunConfig:
        """Return the config that the folder was made for."""
        path = self.path / CONFIG
        values = _read_json(path)
        try:
            return RunConfig.from_dict(values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} should hold the config of a run, but: {error}") from None

    def result(self) -> dict[str, Any] | None:
        """Return how the run ended, or None if it has not."""
        return _read_json(self.path / RESULT) if (self.path / RESULT).exists() else None

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Record how the run ended."""
        write_whole(self.path / RESULT, _json(result))

    def write_metrics(self, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Write the lines of all epochs so far; the file is replaced, so that no line is ever torn or repeated."""
        write_whole(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in metrics).encode())

    def save_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Save where the run stands; the checkpoint before it is kept, and the one before that replaced.

        Raises:
            OSError: It could not be written, for instance for want of space; the last checkpoint is as it was.
        """
        content = _sealed(checkpoint)
        current, previous = self.path / CHECKPOINT, self.path / PREVIOUS_CHECKPOINT
        new = self.path / f"{CHECKPOINT}.new"
        try:
            write_flushed(new, content)
        except OSError as error:
            if error.errno != errno.ENOSPC or not previous.exists():
                raise not_written(error, current) from error
            # A finished epoch is worth more than a second copy of an older one.
            previous.unlink()
            try:
                write_flushed(new, content)
            except OSError as again:
                raise not_written(again, current) from again
        if current.exists() and not self._last_is_damaged:  # a whole one before it is worth more
            os.replace(current, previous)
        os.replace(new, current)
        self._last_is_damaged = False
        flush_folder(self.path)

    def load_checkpoint(self) -> tuple[dict[str, Any] | None, list[str]]:
        """Return the last checkpoint that is whole, or None; and a sentence on each that is not.

        A truncated or altered file is noticed by its checksum, wherever the damage is.
        """
        faults: list[str] = []
        for name in (CHECKPOINT, PREVIOUS_CHECKPOINT):
            path = self.path / name
            if not path.exists():
                continue
            try:
                return _unsealed(path.read_bytes()), faults
            except Exception as error:  # a damaged file can fail in any way, and each means: not this one
                self._last_is_damaged |= name == CHECKPOINT
                said = " ".join(f"{type(error).__name__}: {error}".split())
                faults.append(f"{path} is damaged ({said:.120}); left out")
        return None, faults


def _sealed(checkpoint: Mapping[str, Any]) -> bytes:
    """Return torch's file of a checkpoint with its SHA-256 at the end, where the zip format has room for a comment.

    So `torch.load` reads it as any other. The format's own checksums are not enough: they leave out the table of
    contents, and with one byte of that changed torch may return whatever is in memory.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(dict(checkpoint), buffer)
    body = buffer.getvalue()[: -len(NO_COMMENT)] + SEAL_LENGTH.to_bytes(len(NO_COMMENT), "little")
    return body + hashlib.sha256(body).hexdigest().encode()


def _unsealed(content: bytes) -> dict[str, Any]:
    import torch

    body, seal = content[:-SEAL_LENGTH], content[-SEAL_LENGTH:]
    if hashlib.sha256(body).hexdigest().encode() != seal:
        raise ValueError("its checksum is another")
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _json(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no text
        raise ValueError(f"{path} should hold JSON, but is damaged: {error}") from None
