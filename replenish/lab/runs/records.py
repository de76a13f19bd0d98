"""Read runs back from any depth of a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import check_runs_folder
from replenish.lab.config import RunConfig
from replenish.lab.runs.folder import CONFIG, RunFolder, finite


@dataclass(frozen=True)
class RunRecord:
    """One run, read from its folder.

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

    def told(self, name: str) -> Any:
        """Return what the result has by a name; None if it has nothing, or the run has not ended."""
        return (self.result or {}).get(name)

    def number(self, name: str) -> float | None:
        """Return a number of the result; None if there is none that is finite."""
        return finite(self.told(name))

    @property
    def last_epoch(self) -> int:
        """The last effective epoch with a line of metrics; 0 for none."""
        return int(self.metrics[-1]["epoch"]) if self.metrics else 0


def read_runs(directory: str | os.PathLike[str]) -> list[RunRecord]:
    """Return every run below a directory, in the order of their paths; an empty list if there is none.

    Args:
        directory: Where the runs are; checkpoints, locks and the files of other programs there are left alone.

    Raises:
        OSError: The directory or a file in it cannot be read.
        ValueError: A file is garbled. Only the last line of a run that has not ended may be torn.
    """
    root = Path(directory)
    check_runs_folder(root)
    folders = [path.parent for path in root.rglob(CONFIG) if path.is_file() and RunFolder(path.parent).is_run()]
    return sorted((read_run(root, folder) for folder in folders), key=lambda record: record.path)


def read_run(root: Path, folder: Path) -> RunRecord:
    """Return the run of one folder, with its path relative to `root`; errors as for `read_runs`."""
    run = RunFolder(folder)
    return RunRecord(folder.relative_to(root).as_posix(), run.config(), run.metrics(), run.result())
