"""Files that are there whole or not at all, also if the machine stops: written beside their place, flushed, renamed.

And folders that one process alone writes to.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also if the machine stops.

    Raises:
        OSError: It could not be written; what was there is as it was.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        write_flushed(new, content)
        os.replace(new, path)
        flush_folder(path.parent)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise not_written(error, path) from error


def check_place(name: str, path: Path, *suffixes: str) -> None:
    """Refuse a place for a file, called `name` by whoever gave it, before the work is done that is to go there."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{name} should be the name of a {suffixes[0]} file, but got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"{name} should be in a folder that is there, but got {path}")
    if path.is_dir():
        raise ValueError(f"{name} should be the name of a file, but got the folder {path}")


def check_runs_folder(folder: Path) -> None:
    """Refuse a folder of runs that is not there, before anything heavy is loaded to read them."""
    if not folder.exists():
        raise FileNotFoundError(f"there is no directory {folder}; give the one that `replenish run` wrote its runs to")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and should be the directory that `replenish run` wrote to")


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and have it on the disk; after an error it is not there."""
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)  # half a file would only take the room that is missing
        raise


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """Hold a folder, made if need be, so that no other process does; however this process ends, it is free then.

    Raises:
        BlockingIOError: Another process does what `doing` says in it.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock", timeout=0).acquire()
    except Timeout:
        raise BlockingIOError(f"another process {doing} in {folder}; wait for it or stop it") from None
    with lock:
        yield


def flush_folder(folder: Path) -> None:
    """Have a folder's new names on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def not_written(error: OSError, path: Path) -> OSError:
    """Return an error that says in a sentence which file could not be written, and what to do."""
    if error.errno == errno.ENOSPC:
        return OSError(
            f"the disk is full: {path} could not be written; what was finished before is kept, so free some space "
            f"and give the same command again"
        )
    return OSError(f"{path} could not be written: {error.strerror or error}")
