"""What was run, on what and how long: every run, every machine, and the runs that a reader must know of."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from replenish.lab.report.cells import duration, percent
from replenish.lab.report.document import NOTHING, Cell, Column, Notice, Row, Section, Table
from replenish.lab.report.grouping import sampler_name
from replenish.lab.report.reading import RunRecord, finite


def facts(runs: Sequence[RunRecord]) -> tuple[tuple[str, str], ...]:
    """Return the few numbers that say how much was run."""
    counts = {status: sum(run.status == status for run in runs) for status in ("finished", "diverged", "unfinished")}
    seeds = {run.config.seed for run in runs}
    found = [("runs finished", f"{counts['finished']:,} of {len(runs):,}")]
    found += [(status, f"{counts[status]:,}") for status in ("diverged", "unfinished") if counts[status]]
    found += [("seeds", f"{len(seeds):,}"), ("training time", duration(sum(_seconds(run) for run in runs)))]
    return tuple(found)


def notices(runs: Sequence[RunRecord], repeats: Sequence[str]) -> tuple[Notice, ...]:
    """Return the runs that diverged, that have not ended, and that are there twice."""
    found = []
    diverged = tuple(_diverged(run) for run in runs if run.status == "diverged")
    if diverged:
        found.append(Notice("Diverged: counted as diverged, in no median and no mean", diverged))
    unfinished = tuple(
        f"{run.path}: {run.last_epoch} of {run.config.epochs} epochs" for run in runs if run.status == "unfinished"
    )
    if unfinished:
        found.append(Notice("Not finished yet: in no number below", unfinished))
    if repeats:
        found.append(Notice("The same run in two folders: counted once", tuple(repeats)))
    return tuple(found)


def _diverged(run: RunRecord) -> str:
    message = (run.result or {}).get("message")
    return f"{run.path}: after {run.last_epoch} of {run.config.epochs} epochs" + (f", {message}" if message else "")


def inventory(runs: Sequence[RunRecord]) -> Section:
    """Return the section that lists every run and the surroundings that they ran in."""
    surroundings: dict[tuple[tuple[str, str], ...], str] = {}
    for run in runs:
        if run.result is not None:
            surroundings.setdefault(_surroundings(run.result), "")
    for number, key in enumerate(sorted(surroundings)):
        surroundings[key] = _letters(number)
    rows = tuple(Row(run.path, _run_cells(run, surroundings)) for run in runs)
    columns = (
        Column("Folder"),
        Column("Sampler"),
        Column("Seed", numeric=True),
        Column("Status"),
        Column("Epochs", numeric=True),
        Column("Error", "last epoch, %", numeric=True),
        Column("Time", numeric=True),
        Column("Weights", "sha256"),
        Column("Commit"),
        Column("Machine", "see below"),
        Column("Command"),
    )
    tables = [Table("runs", "Every run", f"{len(runs):,} runs, by folder.", columns, rows)]
    if surroundings:
        tables.append(_machines(surroundings, runs))
    return Section("what-was-run", "What was run", blocks=tuple(tables))


def _run_cells(run: RunRecord, surroundings: dict[tuple[tuple[str, str], ...], str]) -> tuple[Cell, ...]:
    result = run.result or {}
    ended = run.result is not None
    return (
        Cell(run.path, code=True),
        Cell(sampler_name(run.config)),
        Cell(str(run.config.seed)),
        Cell(run.status),
        Cell(f"{run.last_epoch} of {run.config.epochs}"),
        Cell(percent(finite(result.get("test_error")))),
        Cell(duration(_seconds(run))),
        Cell(str(result.get("weights_sha256") or NOTHING)[:12], code=True),
        Cell(str(result.get("commit") or NOTHING), code=True),
        Cell(surroundings[_surroundings(result)] if ended else NOTHING),
        Cell(str(result.get("command") or NOTHING), code=True),
    )


def _machines(surroundings: dict[tuple[tuple[str, str], ...], str], runs: Sequence[RunRecord]) -> Table:
    rows = []
    for key, letter in sorted(surroundings.items(), key=lambda item: item[1]):
        parts = dict(key)
        count = sum(run.result is not None and _surroundings(run.result) == key for run in runs)
        cells = (Cell(letter), Cell(f"{count:,}"), *(Cell(parts[name]) for name in ("machine", "hardware", "versions")))
        rows.append(Row(letter, cells))
    columns = (
        Column("Machine"),
        Column("Runs", numeric=True),
        Column("What it is"),
        Column("How it was used"),
        Column("Versions"),
    )
    return Table("machines", "Machines and versions", "What the runs that ended ran on.", columns, tuple(rows))


def _surroundings(result: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _plain(result.get(name))) for name in ("machine", "hardware", "versions"))


def _plain(values: object) -> str:
    if isinstance(values, dict):
        return ", ".join(f"{name} {value}" for name, value in values.items()) or NOTHING
    return NOTHING if values is None else str(values)


def _letters(number: int) -> str:
    letter = string.ascii_uppercase[number % 26]
    return letter if number < 26 else f"{letter}{number // 26}"


def _seconds(run: RunRecord) -> float:
    recorded = finite((run.result or {}).get("seconds"))
    if recorded is None and run.metrics:
        recorded = finite(run.metrics[-1].get("seconds"))
    return recorded or 0.0
