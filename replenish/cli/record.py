"""Printing of a flight recorder's file, for `replenish what` and `replenish when`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish.cli.console import output, print_json

if TYPE_CHECKING:
    from replenish.exec.flight_record import FlightRecord

#: More than a screen or two is for `--json`.
MOST_ROWS = 128


def number_and_source(name: str, first: str, second: str | None) -> tuple[int, Path | None]:
    """Return the number and the source of a command's two arguments, which may come in either order.

    Example:
        >>> number_and_source("STEP", "run.rec", "7")
        (7, PosixPath('run.rec'))
    """
    words = [each for each in (first, second) if each is not None]
    numbers = [each for each in words if each.isascii() and each.isdigit()]
    if not numbers:
        raise ValueError(f"{name} should be a whole number, 0 or more, but got {' '.join(words)}")
    words.remove(numbers[0])
    return int(numbers[0]), Path(words[0]) if words else None


def print_step(path: Path, step: int, loader: int | None, as_json: bool) -> None:
    """Print which samples were in a batch."""
    from replenish.lab.show.table import Column, Table, print_table

    record, place = _record(path, loader)
    batches = [batch.tolist() for batch in record.batch(step, place)]
    if as_json:
        print_json({"step": step, "loader": place, "ranks": batches})
        return
    rows = [(rank, number, sample) for rank, batch in enumerate(batches) for number, sample in enumerate(batch)]
    columns = [
        Column("place", lambda row: str(row[1])),
        Column(_sample(record, place), lambda row: str(row[2])),
    ]
    if len(batches) > 1:
        columns.insert(0, Column("rank", lambda row: str(row[0])))
    caption = [f"{len(rows):,} samples; loader {place} of {path.name}.", _remark(record)]
    if len(rows) > MOST_ROWS:
        caption.insert(1, f"The first {MOST_ROWS} are shown; --json has all.")
    shown: list[tuple[str, Any]] = [(f"{rank}-{number}", (rank, number, sample)) for rank, number, sample in rows]
    table = Table("what", f"Step {step:,}", columns, shown[:MOST_ROWS], caption=" ".join(filter(None, caption)))
    print_table(table, output())


def print_steps(path: Path, sample: int, loader: int | None, start: int, stop: int | None, as_json: bool) -> None:
    """Print in which batches a sample was."""
    from replenish.lab.show.table import Column, Table, print_table

    record, place = _record(path, loader)
    end = record.steps_of_loader(place) if stop is None else stop
    if start > end:
        raise ValueError(f"--start should be at most {end}, where the steps to look at end, but got {start}")
    steps = [step for step in record.steps_with(sample, place).tolist() if start <= step < end]
    if as_json:
        print_json({"sample": sample, "loader": place, "start": start, "stop": end, "steps": steps})
        return
    caption = [
        f"{len(steps):,} of the steps from {start:,} to {end:,}; loader {place} of {path.name}.",
        _remark(record),
    ]
    rows: list[tuple[str, Any]] = [(str(step), step) for step in steps]
    table = Table(
        "when",
        f"Sample {sample:,}",
        [Column("step", "{:,}".format)],
        rows,
        caption=" ".join(filter(None, caption)),
    )
    print_table(table, output())


def refuse_for_a_record(path: Path, **flags: object) -> None:
    """Refuse options that mean nothing for a record, which has the samples themselves."""
    for name, value in flags.items():
        if value:
            raise ValueError(f"--{name.replace('_', '-')} should be left out, since {path} has the samples")


def _record(path: Path, loader: int | None) -> tuple[FlightRecord, int]:
    from replenish import checks
    from replenish.exec.flight_record import read_record

    record = read_record(path)
    return record, checks.integer("--loader", loader or 0, minimum=0, maximum=len(record.loaders) - 1)


def _sample(record: FlightRecord, loader: int) -> str:
    return "item" if record.loaders[loader][0].facts["is_stream"] else "sample"


def _remark(record: FlightRecord) -> str:
    others = len(record.loaders) - 1
    return " ".join(
        [
            *([f"There are {others} more training loaders; see --loader."] if others else []),
            *([] if record.whole else ["The run was killed: its last second may be missing."]),
        ]
    )
