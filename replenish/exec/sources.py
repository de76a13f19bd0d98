"""The user's own files that a run was made with, so that results from before a change are not mistaken for new ones.

They are the sources that its processes import and the files that its command line names. Files that a script opens by
itself are not among them, but `find_leftovers` finds those that other runs have left in the working folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_ENDING = ".sources"  # of the name of a process's file, in the folder of the run
# Larger files are data. Size and time stand for their contents, which would take too long to read.
_LARGE = 2**28
# Leftovers are searched among at most so many files of the working folder, which may hold data.
_MOST_FILES = 20_000

#: A digest for each path; None for a file that was written during the run, such as its own output.
Digests = Mapping[str, str | None]


def write_sources(folder: str | os.PathLike[str]) -> None:
    """Write which of the user's own sources this process has imported.

    It is called when the process makes its first loader and when it ends. A source that is already in the file keeps
    its digest, since it may be edited while the script runs.
    """
    path = Path(folder) / f"{os.getpid()}{_ENDING}"
    known = json.loads(path.read_text()) if path.exists() else {}
    known |= {str(source): _digest(source) for source in _own_sources() if str(source) not in known}
    path.write_text(json.dumps(known))


def read_sources(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the digests of the sources that the processes of a run have imported, by path."""
    found: dict[str, str] = {}
    for path in sorted(Path(folder).glob(f"*{_ENDING}")):
        found |= json.loads(path.read_text())
    return found


def find_leftovers(folder: str, since: float, until: float, *, ignored: str) -> list[str]:
    """Return the files below a folder that were written between two times: perhaps checkpoints to resume from.

    The `ignored` folder is left out, and so are hidden folders and Python's caches.
    """
    found: list[str] = []
    looked_at = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".") and name != "__pycache__" and os.path.join(parent, name) != ignored
        ]
        paths = [os.path.join(parent, name) for name in sorted(names) if not name.startswith(".")]
        found += [path for path in paths if os.path.isfile(path) and since <= os.stat(path).st_mtime < until]
        looked_at += len(names)
        if looked_at > _MOST_FILES:
            break
    return found


class NamedFiles:
    """The files that a command's words name, as they are before the run: configs, shell scripts, small data."""

    def __init__(self, words: Iterable[str]) -> None:
        parts = [part for word in words for part in (word, *re.split(r"[\s=:;@]+", word))]
        self._times = {path: _time(path) for path in map(os.path.abspath, filter(None, parts)) if os.path.isfile(path)}
        self._digests = {path: _digest(Path(path)) for path in self._times}

    def after_the_run(self) -> dict[str, str | None]:
        """Return their digests, with None for files that were written since."""
        return {path: self._digests[path] if _time(path) == time else None for path, time in self._times.items()}


def changed_sources(sources: Digests) -> list[str]:
    """Return which files of a run have changed since; deleted files do not count."""
    known = {path: digest for path, digest in sources.items() if digest is not None and Path(path).is_file()}
    return [path for path, digest in known.items() if _digest(Path(path)) != digest]


def differing_sources(first: Digests, second: Digests) -> list[str]:
    """Return the files that both runs used, but in different versions."""
    return [path for path in first if path in second and first[path] != second[path]]


def _own_sources() -> Iterator[Path]:
    """Yield the files of modules that belong neither to Python nor to an installed package."""
    homes = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed = tuple(os.path.join(home, "") for home in (*homes, Path(__file__).parents[1]))
    for module in list(sys.modules.values()):
        path = os.path.abspath(str(getattr(module, "__file__", None) or ""))
        is_own = not path.startswith(installed) and not re.search(r"\W(site|dist)-packages\W", path)
        if is_own and os.path.isfile(path):
            yield Path(path)


def _digest(path: Path) -> str:
    about = path.stat()
    return _digest_of(path, about.st_size, about.st_mtime_ns)


@functools.cache
def _digest_of(path: Path, size: int, written: int) -> str:
    """Return the digest of a file; cached, since all runs of a comparison use the same files."""
    return f"{size} bytes of {written}" if size > _LARGE else hashlib.sha256(path.read_bytes()).hexdigest()


def _time(path: str) -> int | None:
    """Return when a file was last written; None if there is no such file."""
    return os.stat(path).st_mtime_ns if os.path.isfile(path) else None
