"""What happened to the loaders of a run: each of its processes writes a file, which is read after the run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.exec.environment import FIRST_PROCESS

# The first CHANGES changes are written at once, later ones at most once in SECONDS, since a loop may begin a pass at
# every step. The last counts are written when the process ends.
CHANGES, SECONDS = 100, 0.5


class RecordWriter:
    """Writes the `LoaderRecord`s of this process whenever they change, since the process may be killed."""

    def __init__(self, folder: str, records: Sequence[Any]) -> None:
        self.records = records
        self._folder = folder
        self._changes, self._seconds = 0, 0.0
        self._process, self._ended = os.getpid(), False
        self._written: list[dict[str, Any]] = []
        self._inherited: list[dict[str, Any]] = []

    def changed(self) -> None:
        """Write the records, unless they were written just now."""
        self._changes += 1
        if not self._ended and (self._changes <= CHANGES or time.monotonic() - self._seconds > SECONDS):
            self.write()

    def end(self) -> None:
        """Write the records for the last time; ignore iterators that end while Python shuts down."""
        self.write()
        self._ended = True

    def write(self) -> None:
        """Write the records, if the run has not ended. After a fork, leave out those that the parent has written."""
        if not os.path.isdir(self._folder):
            return
        if os.getpid() != self._process:
            self._process, self._inherited = os.getpid(), self._written
        self._written = [record.to_dict() for record in self.records]
        lines = [line for line in self._written if line not in self._inherited]
        path = Path(self._folder, f"{self._process}.json")
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"place": _place(), "loaders": lines}))
        new.replace(path)
        self._seconds = time.monotonic()


def _place() -> list[int]:
    """Return where to sort this process: by rank, and the run's first process before those that it started."""
    rank = os.environ.get("RANK", "")
    return [int(rank) if rank.isdigit() else 0, int(os.environ.get(FIRST_PROCESS) != str(os.getpid()))]


@dataclass(frozen=True)
class RunRecords:
    """What happened to the loaders of a run.

    Attributes:
        loaders: A dict for each loader: the fields of `LoaderRecord`, with `summary` and `replaced`. A loader that
            several processes have is listed once. Records of earlier releases have `said` instead of `summary`.
    """

    loaders: tuple[dict[str, Any], ...]

    @property
    def replaced(self) -> bool:
        """Whether the order was used at all."""
        return any(loader["replaced"] for loader in self.loaders)

    def summaries(self) -> list[str]:
        """Return a line for each loader; those that were never iterated are named only if no order was used."""
        hidden = self.replaced
        return [
            loader.get("summary") or loader["said"]
            for loader in self.loaders
            if not (hidden and loader.get("is_unused"))
        ]

    def why_nothing(self) -> str:
        """Return in a line why the order was not used, if it was not."""
        if not self.loaders:
            return "the script made no torch DataLoader, and loaders of other libraries keep their own order"
        return "of its loaders " + "; ".join(self.summaries())

    def sizes(self) -> list[tuple[int, ...]]:
        """Return the sizes of the loaders with the order, which must be equal in runs that are compared."""
        names = ("num_samples", "batch_size", "num_replicas")
        return sorted(tuple(loader[name] or 0 for name in names) for loader in self.loaders if loader["replaced"])


def read_records(folder: str | os.PathLike[str]) -> RunRecords:
    """Return what the processes of a run have written, in order of rank."""
    processes = []
    for path in Path(folder).glob("*.json"):
        found = json.loads(path.read_text())
        processes.append(([*found["place"], path.stat().st_mtime_ns], found["loaders"]))
    by_identity: dict[str, list[dict[str, Any]]] = {}
    for _, loaders in sorted(processes, key=lambda each: each[0]):
        for loader in loaders:
            names = ("dataset", "num_samples", "batch_size", "num_replicas", "order", "seed", "reason", "replaced")
            by_identity.setdefault(json.dumps([loader[name] for name in names]), []).append(loader)
    return RunRecords(tuple(_merged(loaders) for loaders in by_identity.values()))


def _merged(loaders: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one record of a loader that several processes have.

    If they divide its batches, it is the first process's, with a warning if they began different numbers of passes.
    """
    first = loaders[0]
    if first["num_replicas"] == 1:
        return max(loaders, key=lambda loader: loader["passes"])
    passes = sorted({loader["passes"] for loader in loaders})
    if len(passes) == 1:
        return first
    counts = " and ".join(f"{count:,}" for count in passes)
    warning = f"; warning: processes began {counts} passes, so their batches belong to different epochs"
    return {**first, "summary": first["summary"] + warning}
