"""The two checkpoints of a run in progress: the last one, and the one before it in case the last is damaged."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import flush_folder, not_written, write_flushed

CHECKPOINT, PREVIOUS_CHECKPOINT = "checkpoint.pt", "checkpoint-previous.pt"
#: A zip file ends with the length of its comment; torch writes none. The seal is a SHA-256 in hexadecimal.
NO_COMMENT, SEAL_LENGTH = bytes(2), 64


class Checkpoints:
    """The checkpoints in a run's folder."""

    def __init__(self, folder: Path) -> None:
        self._current, self._previous = folder / CHECKPOINT, folder / PREVIOUS_CHECKPOINT
        self._last_is_damaged = False

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Save the state of the run, and keep the last checkpoint as the previous one.

        Raises:
            OSError: The state could not be written, for instance on a full disk; the last checkpoint is unchanged.
        """
        content = _sealed(checkpoint)
        new = self._current.with_name(f"{CHECKPOINT}.new")
        try:
            write_flushed(new, content)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._previous.exists():
                raise not_written(error, self._current) from error
            # A finished epoch is worth more than a second copy of an older one.
            self._previous.unlink()
            try:
                write_flushed(new, content)
            except OSError as again:
                raise not_written(again, self._current) from again
        if self._current.exists() and not self._last_is_damaged:  # a damaged one must not replace the previous one
            os.replace(self._current, self._previous)
        os.replace(new, self._current)
        self._last_is_damaged = False
        flush_folder(self._current.parent)

    def load(self) -> tuple[dict[str, Any] | None, list[str]]:
        """Return the last undamaged checkpoint, or None, and a sentence about each damaged one.

        The checksum finds any damage to a file.
        """
        faults: list[str] = []
        for path in (self._current, self._previous):
            if not path.exists():
                continue
            try:
                return _unsealed(path.read_bytes()), faults
            except Exception as error:  # a damaged file can fail in any way
                self._last_is_damaged |= path == self._current
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                faults.append(f"{path} is damaged ({reason:.120}); left out")
        return None, faults

    def forget_previous(self) -> None:
        """Remove the previous checkpoint, which a run that has ended does not need."""
        if self._current.exists():
            self._previous.unlink(missing_ok=True)


def _sealed(checkpoint: Mapping[str, Any]) -> bytes:
    """Return torch's file of a checkpoint with its SHA-256 in the comment at the end of the zip format.

    `torch.load` reads it like any other file. The checksums of the zip format are not enough: they do not cover its
    table of contents. If a byte of that is changed, torch may return whatever is in memory.
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
