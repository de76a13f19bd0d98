"""What became of the loaders of a run, over all its processes: written as it happens, read when the run has ended."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def write_record(folder: str, number: int, record: Any) -> None:
    """Write a `LoaderRecord`, this process's `number`-th, to the process's own file in the folder of the run.

    It is a line for every change: so that a process that is killed has told them.
    """
    line = json.dumps({"number": number, **vars(record), "said": record.said(), "replaced": record.replaced})
    # Opened anew: a fork would share the file, and so its place in it.
    with Path(folder, f"{os.getpid()}.jsonl").open("a") as file:
        file.write(line + "\n")


@dataclass(frozen=True)
class RunRecords:
    """What became of the loaders of a run.

    Attributes:
        loaders: A dict for each: the fields of `LoaderRecord`, with `said` and `replaced`. Those that several processes
            have alike are there once, those that a framework has made anew only as it made them.
    """

    loaders: tuple[dict[str, Any], ...]

    @property
    def replaced(self) -> bool:
        """Whether the order was used at all."""
        return any(loader["replaced"] for loader in self.loaders)

    def why_nothing(self) -> str:
        """Return in a line why the order was not used, if it was not."""
        if not self.loaders:
            return "it never made a DataLoader"
        return "of its loaders " + "; ".join(loader["said"] for loader in self.loaders)

    def sizes(self) -> list[tuple[int, ...]]:
        """Return what the loaders with the order draw, which runs that are compared should have alike."""
        names = ("num_samples", "batch_size", "num_replicas")
        return sorted(tuple(loader[name] for name in names) for loader in self.loaders if loader["replaced"])


def read_records(folder: str | os.PathLike[str]) -> RunRecords:
    """Return what the processes of a run have written; a line that was cut off is left out."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns):
        lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
        for loader in {loader["number"]: loader for loader in lines}.values():  # the latest of each
            if not loader["rebuilt"]:
                found.setdefault(loader["said"], loader)
    return RunRecords(tuple(found.values()))
