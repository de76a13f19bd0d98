"""What was run, on which machines and for how long, and notices about runs that did not finish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from replenish.lab.report.grouping import order_name
from replenish.lab.report.text import duration, percent
from replenish.lab.runs import RunRecord, finite
from replenish.lab.show import NOTHING, Cell, Column, Fact, Notice, Section, Table

#: The fields of a result that say where it was run.
_SURROUNDINGS = ("machine", "hardware", "versions")


def facts(runs: Sequence[RunRecord]) -> tuple[Fact, ...]:
    """Return the numbers at the top of a report: how much was run."""
    counts = Counter(run.status for run in runs)
    found = [Fact(f"{counts['finished']:,} of {len(runs):,}", "runs finished")]
    found += [Fact(f"{counts[status]:,}", status) for status in ("diverged", "unfinished") if counts[status]]
    found.append(Fact(f"{len({run.config.seed for run in runs}):,}", "seeds"))
    return (*found, Fact(duration(sum(_seconds(run) for run in runs)), "training time"))


def notices(runs: Sequence[RunRecord], repeats: Sequence[str]) -> tuple[Notice, ...]:
    """Return notices about the runs that diverged, have not ended, or are in two folders."""
    found = {
        "Diverged: counted as diverged, in no mean": [_diverged(run) for run in runs if run.status == "diverged"],
        "Not finished yet: in no number below": [
            f"{run.path}: {run.last_epoch} of {run.config.epochs} epochs" for run in runs if run.status == "unfinished"
        ],
        "The same run in two folders: counted once": repeats,
    }
    return tuple(Notice(title, tuple(items)) for title, items in found.items() if items)


def _diverged(run: RunRecord) -> str:
    message = run.field("message")
    return f"{run.path}: after {run.last_epoch} of {run.config.epochs} epochs" + (f", {message}" if message else "")


def inventory(runs: Sequence[RunRecord]) -> Section:
    """Return the section that lists every run and every machine."""
    counts = Counter(_surroundings(run.result) for run in runs if run.result is not None)
    kinds = sorted(counts)
    numbers = {kind: str(number) for number, kind in enumerate(kinds, start=1)}
    columns = (
        Column("Folder", lambda run: Cell(run.path, code=True), numeric=False),
        Column("Order", lambda run: order_name(run.config), numeric=False),
        Column("Seed", lambda run: str(run.config.seed)),
        Column("Status", lambda run: run.status, numeric=False),
        Column("Epochs", lambda run: f"{run.last_epoch} of {run.config.epochs}"),
        Column("Error", lambda run: percent(run.number("test_error")), "last epoch, %"),
        Column("Time", lambda run: duration(_seconds(run))),
        Column("Weights", lambda run: _code(run, "weights_sha256", 12), "sha256", numeric=False),
        Column("Commit", lambda run: _code(run, "commit"), numeric=False),
        Column(
            "Machine", lambda run: NOTHING if run.result is None else numbers[_surroundings(run.result)], "see below"
        ),
        Column("Command", lambda run: _code(run, "command"), numeric=False),
    )
    every = [(run.path, run) for run in runs]
    tables = [Table("runs", "Every run", columns, every, f"{len(runs):,} runs, by folder.")]
    if kinds:
        machine = (
            Column("Machine", lambda kind: numbers[kind], numeric=False),
            Column("Runs", lambda kind: f"{counts[kind]:,}"),
            Column("What it is", lambda kind: kind[0], numeric=False),
            Column("How it was used", lambda kind: kind[1], numeric=False),
            Column("Versions", lambda kind: kind[2], numeric=False),
        )
        caption = "What the runs that ended ran on."
        named = [(numbers[kind], kind) for kind in kinds]
        tables.append(Table("machines", "Machines and versions", machine, named, caption))
    return Section("what-was-run", "What was run", blocks=tuple(tables))


def _seconds(run: RunRecord) -> float:
    """Return how long a run took, or has taken so far."""
    recorded = run.number("seconds")
    if recorded is None and run.metrics:
        recorded = finite(run.metrics[-1].get("seconds"))
    return recorded or 0.0


def _code(run: RunRecord, name: str, length: int | None = None) -> Cell:
    return Cell(str(run.field(name) or NOTHING)[:length], code=True)


def _surroundings(result: dict[str, Any]) -> tuple[str, ...]:
    parts = (result.get(name) or {} for name in _SURROUNDINGS)
    return tuple(", ".join(f"{name} {value}" for name, value in part.items()) or NOTHING for part in parts)
