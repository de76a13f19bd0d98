"""A script run with its loaders recorded: alone, or as one of torchrun's processes, whose records are joined."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from replenish.exec.audit_task import AuditTask
from replenish.exec.draw_log import SUFFIX

_GRACE = 20.0  # seconds for the processes of a script to end after one of them did, as it was told
_OTHER_RANKS = 120.0  # seconds in which the other processes of torchrun should have ended


@contextmanager
def recorded_run(words: Sequence[str], kept: Path | None = None, **limits: Any) -> Iterator[tuple[int, Path]]:
    """Run a command, and yield its exit code and the folder with the draws of its loaders.

    Under torchrun the processes of a machine share the folder, and the first one waits for the others. The folder is
    removed at the end, but `kept` is removed by whoever reads it: a run that is killed leaves it.
    """
    shared = _shared_folder()
    folder = kept or shared or Path(tempfile.mkdtemp(prefix="replenish-audit-"))
    folder.mkdir(exist_ok=True)
    local_rank, ranks = int(os.environ.get("LOCAL_RANK") or 0), int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    try:
        code = run_until_ended(words, AuditTask(str(folder), **limits).environment(), folder)
        if shared is not None:
            (folder / f"{local_rank}.done").touch()
            if local_rank == 0:
                _wait(lambda: len(list(folder.glob("*.done"))) >= ranks, _OTHER_RANKS)
        yield code, folder
    finally:
        if kept is None and (shared is None or local_rank == 0):
            shutil.rmtree(folder, ignore_errors=True)


def run_until_ended(
    words: Sequence[str],
    environment: dict[str, str],
    folder: Path,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> int:
    """Run a command, and return its exit code; 0 if it was told to end and did not do so by itself.

    A process that was told to end may leave others waiting for it, which are then killed.
    """
    own_group = os.name == "posix"
    process = subprocess.Popen(words, env=environment, cwd=cwd, start_new_session=own_group)
    ended: float | None = None
    began = time.monotonic()
    try:
        while True:
            try:
                return process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                now = time.monotonic()
                if timeout is not None and now - began > timeout:
                    raise TimeoutError(f"the script ran for more than {timeout:.0f} s") from None
                if ended is None and _was_ended(folder):
                    ended = now
                if ended is not None and now - ended > _GRACE:
                    return 0
    finally:
        if own_group:
            _kill_group(process.pid)


def _was_ended(folder: Path) -> bool:
    for path in folder.glob(f"*{SUFFIX}"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64))
            if b'"kind":"ended"' in file.read():
                return True
    return False


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # all have ended
        return


def _shared_folder() -> Path | None:
    """Return the folder of all processes that one torchrun has started on this machine; None without torchrun."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or int(os.environ.get("LOCAL_WORLD_SIZE") or 1) == 1:
        return None
    names = ("MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    told = "-".join(os.environ.get(name, "0") for name in names)
    return Path(tempfile.gettempdir()) / f"replenish-audit-{os.getuid()}-{os.getppid()}-{told}"


def _wait(condition: Any, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True
