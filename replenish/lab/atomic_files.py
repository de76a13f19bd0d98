"""Files that are written whole or not at all, even if the machine stops, and folders that only one process writes to.

A file is written under another name, flushed and renamed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, even if the machine stops.

    Raises:
        OSError: The file could not be written; an earlier file of that name is unchanged.
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
    """Raise if no file can be written to a path; called before the work. `name` is the option or argument."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{name} should be the name of a {suffixes[0]} file, but got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"{name} should be in a folder that is there, but got {path}")
    if path.is_dir():
        raise ValueError(f"{name} should be the name of a file, but got the folder {path}")


def check_runs_folder(folder: Path) -> None:
    """Refuse a folder of runs that does not exist, before anything heavy is loaded."""
    if not folder.exists():
        raise FileNotFoundError(f"there is no directory {folder}; give the one that `replenish run` wrote its runs to")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and should be the directory that `replenish run` wrote to")


def write_flushed(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk; after an error there is no file. Links of that name are not followed."""
    try:
        path.unlink(missing_ok=True)  # left by a killed process, or a planted link
        with path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)  # half a file would only take up space
        raise


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """Lock a folder against other processes, and make it if it does not exist. The lock ends with this process.

    Raises:
        BlockingIOError: Another process has locked the folder. The message says that it is `doing` something there.
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
    """Flush the names of new files in a folder to the disk."""
    if os.name != "posix":  # Windows cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def not_written(error: OSError, path: Path) -> OSError:
    """Return an error that names the file and, for a full disk, what to do."""
    if error.errno == errno.ENOSPC:
        return OSError(
            f"the disk is full: {path} could not be written; finished work is kept, so free some space and run "
            f"the same command again"
        )
    return OSError(f"{path} could not be written: {error.strerror or error}")
