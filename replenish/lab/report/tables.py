"""The tables of a report: which experiments are in them; what their columns say is declared in `columns`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replenish.lab import paper
from replenish.lab.config import RunConfig
from replenish.lab.report import columns
from replenish.lab.report.columns import Entry
from replenish.lab.report.findings import Pair
from replenish.lab.report.grouping import Group, origins
from replenish.lab.show import Finding, Table

#: The only scale whose errors can be set against the paper's.
FULL_SCALE = "full"
#: A row of the paper's tables: (experiment, row, data, the experiment that it is compared with).
PaperRow = tuple[str, Any, str, str]
TABLE3: list[PaperRow] = [(row.name, row, "", paper.TABLE3_REFERENCE) for row in paper.TABLE3]
TABLE2: list[PaperRow] = [
    (f"table2/{row.name}/{data.name}", row, data.label, f"table2/{paper.TABLE2_REFERENCE}/{data.name}")
    for data in paper.TABLE1
    for row in paper.TABLE2
]


def paper_tables(groups: Mapping[str, Group], scale: str) -> Iterator[Table]:
    """Yield tables 3 and 2, each over the rows whose experiments have runs at the scale.

    They share runs: table 2 is left out where it would say again what table 3 says.
    """
    full = scale == FULL_SCALE
    scale_words = "" if full else f"; ours at the scale {scale}, so only differences within the table compare"
    tables = (
        (
            "Table 3: WRN and WRN-SRS with different configurations",
            TABLE3,
            (*columns.TABLE3, *columns.results("WRN, 64, (120, 150, 175)", full)),
            "the paper's is on CIFAR-100",
        ),
        (
            "Table 2: test error of the methods",
            TABLE2,
            (*columns.TABLE2, *columns.results("WRN 28-10", full)),
            "differences are to WRN 28-10 on the same data",
        ),
    )
    told: set[RunConfig] = set()
    for title, rows, shown_columns, said in tables:
        entries = _entries(rows, groups, full)
        new = {entry.group.config for entry in entries} - told
        told |= new
        if new:
            yield Table(
                f"{scale}-{rows[0][0].split('/')[0]}",
                title,
                shown_columns,
                [(entry.name, entry) for entry in entries],
                caption=(
                    f"Test error in percent; {said}{scale_words}. The paper's errors are medians of five runs, ours "
                    "means."
                ),
                remarks=list(_missing(rows, groups)),
                origins=origins(entry.group for entry in entries),
            )


def short_table3(groups: Mapping[str, Group]) -> Table:
    """Return table 3 in few columns: the paper's beside ours, all of WRN-10-1, and the differences in each."""
    return Table(
        "short-table3",
        "Table 3 in miniature: test error, %",
        columns.SHORT_TABLE3,
        [(entry.name, entry) for entry in _entries(TABLE3, groups)],
        caption=(
            "Decays are of 200 epochs in the paper, scaled to ours. Ours are means over the seeds, and means of the "
            "differences seed by seed, with 95 % intervals."
        ),
    )


def experiments_table(groups: Mapping[str, Group], name: str, title: str = "Test error by order") -> Table:
    """Return a table with one row for each order or experiment: the test error, and how long a run takes."""
    return Table(
        name,
        title,
        columns.EXPERIMENTS,
        [(label, Entry(label, group)) for label, group in groups.items()],
        caption="Test error in percent at the last epoch, over the seeds that finished.",
        origins=origins(groups.values()),
    )


def differences_table(made: Sequence[Finding], pairs: Sequence[Pair], name: str) -> Table:
    """Return the findings as a table: what was subtracted from what, and how sure it is."""
    return Table(
        name,
        "Paired differences",
        columns.differences_columns(any(finding.paper is not None for finding in made)),
        [(finding.name, finding) for finding in made],
        caption="Test error at the last epoch, in points, seed by seed; below zero the first is better.",
        origins=origins(group for pair in pairs for group in (pair.first, pair.second)),
    )


def _entries(rows: Sequence[PaperRow], groups: Mapping[str, Group], comparable: bool = False) -> list[Entry]:
    entries: dict[tuple[str, RunConfig], Entry] = {}
    for name, row, data, against in rows:
        if name in groups:
            reference = None if name == against else groups.get(against)
            # A scale with data of its own has the same runs for both datasets: told once.
            told = (row.name, groups[name].config)
            entries.setdefault(told, Entry(name, groups[name], row, data, against, reference, comparable))
    return list(entries.values())


def _missing(rows: Sequence[PaperRow], groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield which rows have no runs, for the data that have some."""
    names: dict[str, list[str]] = {data: [] for name, _, data, _ in rows if name in groups}
    for name, row, data, _ in rows:
        if name not in groups and data in names:
            names[data].append(row.name)
    for data, missing in names.items():
        if missing:
            yield f"No runs yet{data and f' on {data}'} of {len(missing)} rows: {', '.join(missing)}."
