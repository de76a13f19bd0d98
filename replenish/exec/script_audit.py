"""The audit of a script: a run whose loaders are recorded, and the judgement of what they drew."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from replenish.auditing import Audit, Finding
from replenish.auditing.judge import judge, subject
from replenish.auditing.ranks import elsewhere, leak
from replenish.auditing.record import Record
from replenish.exec.draw_log import wait_until
from replenish.exec.environment import AuditTask, run_environment
from replenish.exec.run_draws import RecordedLoader, ranks_of, read_run
from replenish.measure.findings import WARNING

_GRACE = 20.0  # seconds for the other processes of a script to end after one of them has ended at its last batch
_SHUTDOWN = 40.0  # seconds for a launcher to end its processes: torchrun gives them 30
_OTHER_RANKS = 120.0  # seconds in which the other processes of torchrun should have ended


@contextmanager
def recorded_run(words: Sequence[str], kept: Path | None = None, **limits: Any) -> Iterator[tuple[int, Path]]:
    """Run a command, and yield its exit code and the folder with the draws of its loaders.

    Under torchrun the processes of a machine share the folder, and the first one waits for the others. A temporary
    folder is removed at the end. The caller removes `kept`, so that it outlives a run that is killed.
    """
    shared = _shared_folder()
    folder = kept or shared or Path(tempfile.mkdtemp(prefix="replenish-audit-"))
    folder.mkdir(exist_ok=True)
    local_rank, ranks = int(os.environ.get("LOCAL_RANK") or 0), int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    try:
        code = run_until_ended(words, run_environment(task=AuditTask(str(folder), **limits)), folder)
        if shared is not None:
            (folder / f"{local_rank}.done").touch()
            if local_rank == 0:
                wait_until(lambda: len(list(folder.glob("*.done"))) >= ranks, _OTHER_RANKS)
        yield code, folder
    finally:
        if kept is None and (shared is None or local_rank == 0):
            shutil.rmtree(folder, ignore_errors=True)


def _shared_folder() -> Path | None:
    """Return the folder that one torchrun's processes on this machine share; None without torchrun."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or int(os.environ.get("LOCAL_WORLD_SIZE") or 1) == 1:
        return None
    port, restarts = (os.environ.get(name, "0") for name in ("MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"))
    return Path(tempfile.gettempdir()) / f"replenish-audit-{os.getuid()}-{os.getppid()}-{port}-{restarts}"


def run_until_ended(words: Sequence[str], environment: dict[str, str], folder: Path, cwd: Path | None = None) -> int:
    """Run a command, and return its exit code; 0 if the recorder ended one of its processes and others hang.

    A process that ends at its last batch may leave others waiting for it, so these are ended too. A launcher gets
    SIGTERM first: its processes are in sessions of their own, and only the launcher can end them.
    """
    own_group = os.name == "posix"
    process = subprocess.Popen(words, env=environment, cwd=cwd, start_new_session=own_group)
    ended: float | None = None
    try:
        while True:
            try:
                return process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                if ended is None and any(folder.glob("*.ended")):
                    ended = time.monotonic()
                if ended is not None and time.monotonic() - ended > _GRACE:
                    return 0
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SHUTDOWN)
        if own_group:
            with suppress(ProcessLookupError, PermissionError):  # all have ended
                os.killpg(process.pid, signal.SIGKILL)


def judge_run(folder: Path) -> tuple[list[tuple[str, Audit]], list[str]]:
    """Return the audits of a run's training loaders, with their names, and lines about what was not audited."""
    run = read_run(folder)
    trained = ranks_of(run)
    others = [loader for loader in run[0].loaders if not loader.training and loader.evaluations] if run else []
    evaluated = [(_name(loader), loader.record(loader.evaluations)) for loader in others]
    audits = []
    for number, ranks in enumerate(trained):
        rest = [each[0].record(each[0].training) for each in trained if each is not ranks]
        audits.append((f"loader {number + 1}: {_name(ranks[0])}", _audit(ranks, rest, evaluated)))
    why = "not audited, its passes are those of an evaluation: gradients were off, or no optimizer made a step"
    lines = [f"{name}: {why}" for name, _ in evaluated]
    ranks_in_all, ranks_here = (int(os.environ.get(name) or 1) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    if ranks_in_all > ranks_here:
        lines.append(f"{ranks_in_all - ranks_here} ranks of other machines: not audited, their draws are not joined")
    return audits, lines


def _audit(ranks: list[RecordedLoader], rest: list[Record], evaluated: list[tuple[str, Record]]) -> Audit:
    first = ranks[0]
    records = [each.record(each.training) for each in ranks]
    drawn_elsewhere = elsewhere(records[0], [*rest, *(record for _, record in evaluated)])
    samples = {each.arrays["samples"].tobytes() if "samples" in each.arrays else None for each in ranks}
    labels = first.arrays.get("labels") if len(samples) == 1 else None
    record, findings = judge(records, first.claim(), labels, elsewhere=drawn_elsewhere)
    findings += [Finding(**each) for loader in ranks for each in loader.findings]
    for name, other in evaluated:
        found = leak(record if record.identity else records[0], other, f"an evaluation ({name})", WARNING)
        if found is not None and found.level == WARNING:
            findings.append(found)
    name = first.promise["name"] + (f" on {len(ranks)} ranks" if len(ranks) > 1 else "")
    return Audit(subject(name, record), tuple(findings))


def _name(loader: RecordedLoader) -> str:
    number, size = loader.facts["num_samples"], loader.facts["batch_size"]
    sizes = [f"N = {number:,}"] if number is not None else []
    return ", ".join([loader.facts["dataset"], *sizes, *([f"B = {size:,}"] if size else [])])
