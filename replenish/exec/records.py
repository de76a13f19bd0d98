"""What became of the loaders of a run, over all its processes: written as it happens, read when the run has ended."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = ".sources"  # how the files end that say which sources a process has imported


class RecordWriter:
    """Writes the records of one process, a line for every change: so that a process that is killed has told them.

    Args:
        folder: Where every process of the run has a file of its own.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def __call__(self, number: int, record: Any) -> None:
        """Write a `LoaderRecord`, the process's `number`-th."""
        line = json.dumps({"number": number, **vars(record), "said": record.said(), "replaced": record.replaced})
        # Opened anew: a fork would share the file, and so its place in it.
        with (self._folder / f"{os.getpid()}.jsonl").open("a") as file:
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


def write_sources(folder: str | os.PathLike[str]) -> None:
    """Write which sources of the user's own this process has imported: those beside the script or below this folder."""
    found = {str(path): _digest(path) for path in _own_sources()}
    (Path(folder) / f"{os.getpid()}{SOURCES}").write_text(json.dumps(found))


def read_sources(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the digests of the sources that the processes of a run have imported, by path."""
    found: dict[str, str] = {}
    for path in sorted(Path(folder).glob(f"*{SOURCES}")):
        found |= json.loads(path.read_text())
    return found


def changed_sources(sources: Mapping[str, str]) -> list[str]:
    """Return which of the sources of a run have changed since; of one that is no longer there nothing is known."""
    return [path for path, digest in sources.items() if Path(path).is_file() and _digest(Path(path)) != digest]


def _own_sources() -> Iterator[Path]:
    script = getattr(sys.modules["__main__"], "__file__", None)
    homes = {Path.cwd(), *([Path(script).absolute().parent] if script else [])}
    installed = {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1]}
    for module in list(sys.modules.values()):
        path = Path(getattr(module, "__file__", None) or "").absolute()
        around = {*path.parents}
        is_own = homes & around and not installed & around and "site-packages" not in path.parts
        if path.suffix == ".py" and is_own and path.is_file():
            yield path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_records(folder: str | os.PathLike[str]) -> RunRecords:
    """Return what the processes of a run have written; a line that was cut off is left out."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns):
        latest: dict[int, dict[str, Any]] = {}
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                loader = json.loads(line)
                latest[loader["number"]] = loader
        for loader in latest.values():
            if not loader["rebuilt"]:
                found.setdefault(loader["said"], loader)
    return RunRecords(tuple(found.values()))
