"""Which sources of the user's own a run was made with: so that results from before a change are not taken for new."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_ENDING = ".sources"  # of a process's file in the folder of the run


def write_sources(folder: str | os.PathLike[str]) -> None:
    """Write which sources of the user's own this process has imported: those beside the script or below this folder."""
    found = {str(path): _digest(path) for path in _own_sources()}
    (Path(folder) / f"{os.getpid()}{_ENDING}").write_text(json.dumps(found))


def read_sources(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the digests of the sources that the processes of a run have imported, by path."""
    found: dict[str, str] = {}
    for path in sorted(Path(folder).glob(f"*{_ENDING}")):
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
