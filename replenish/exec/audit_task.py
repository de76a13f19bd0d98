"""What a run's environment says if its loaders are to be audited, and what was found of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replenish.exec.environment import VARIABLE, environment_with


@dataclass(frozen=True)
class AuditTask:
    """The audit of a run."""

    epochs: int  # how many epochs of a loader are looked at
    steps: int | None  # after how many batches of training the script ends; None lets it go on to its own end
    records: str  # the folder in which every process of the run writes what it found

    def environment(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process whose loaders are to be audited, and all that it starts."""
        return environment_with({"audit": asdict(self)}, inherited)

    @classmethod
    def from_environment(cls) -> AuditTask | None:
        """Return what `environment` told this process; None if it was told an order."""
        told = json.loads(os.environ[VARIABLE]).get("audit")
        return None if told is None else cls(**told)

    def write(self, number: int, found: dict[str, Any]) -> None:
        """Write what is known of this process's `number`-th loader, in place of what was."""
        path = Path(self.records) / f"{os.getpid()}-{number}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.replace(path)


def read_found(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return what the processes of a run have written, in the order of the loaders; processes that agree count once.

    Each has `place`, `state` ("audited", "evaluated" or "made") and, if audited, `audit`, or why that was `refused`.
    """
    paths = sorted(Path(folder).glob("*.json"), key=lambda path: [int(part) for part in path.stem.split("-")][::-1])
    found = []
    for path in paths:
        each = json.loads(path.read_text())
        if each not in found:
            found.append(each)
    return found
