"""The tables of a report: which experiments are in them, and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replenish.lab import paper
from replenish.lab.config import RunConfig
from replenish.lab.paper import published_error
from replenish.lab.report.grouping import Group
from replenish.lab.report.text import dataset_name, duration, percent, schedule_text, span
from replenish.lab.show import NOTHING, Cell, Column, Table
from replenish.lab.statistics import COVERAGE, PERCENT, Difference, Interval, mean_with_interval, paired_difference
from replenish.lab.verdict import signed

#: The only scale whose errors can be compared with the paper's.
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

    Table 2 is left out if all its runs are in table 3 too.
    """
    full = scale == FULL_SCALE
    scale_note = "" if full else f"; ours at the scale {scale}, so only differences within the table compare"
    tables = (
        (
            "Table 3: WRN and WRN-SRS with different configurations",
            TABLE3,
            (*TABLE3_COLUMNS, *results("WRN, 64, (120, 150, 175)")),
            "the paper's is on CIFAR-100",
        ),
        (
            "Table 2: test error of the methods",
            TABLE2,
            (*TABLE2_COLUMNS, *results("WRN 28-10")),
            "differences are to WRN 28-10 on the same data",
        ),
    )
    shown: set[RunConfig] = set()
    for title, rows, columns, caption in tables:
        kept = entries(rows, groups, full)
        new = {entry.group.config for entry in kept} - shown
        shown |= new
        if new:
            yield Table(
                f"{scale}-{rows[0][0].split('/')[0]}",
                title,
                columns,
                [(entry.name, entry) for entry in kept],
                caption=(
                    f"Test error in percent; {caption}{scale_note}. The paper's errors are medians of five runs, ours "
                    "means."
                ),
                remarks=list(_rows_without_runs(rows, groups)),
            )


def orders_table(orders: Mapping[str, Group], name: str) -> Table:
    """Return a table with one row for each order: the test error, and how long a run takes."""
    rows = [(label, error_cell(group), _time(group)) for label, group in orders.items()]
    caption = "Test error in percent at the last epoch, over the seeds that finished."
    notes = ["", "n, 95 % interval", "mean per run"]
    return Table.of_rows(name, "Test error by order", ["Order", "Mean", "Time"], rows, caption, notes=notes)


def entries(rows: Sequence[PaperRow], groups: Mapping[str, Group], comparable: bool = False) -> list[Entry]:
    """Return an entry for each of the paper's rows that has runs."""
    found: dict[tuple[str, RunConfig], Entry] = {}
    for name, row, data, against in rows:
        if name in groups:
            reference = None if name == against else groups.get(against)
            # A smaller scale has the same runs for both of the paper's datasets: they get one row.
            found.setdefault(
                (row.name, groups[name].config), Entry(name, groups[name], row, data, against, reference, comparable)
            )
    return list(found.values())


def _rows_without_runs(rows: Sequence[PaperRow], groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield a sentence on the rows without runs for each dataset that has some runs."""
    names: dict[str, list[str]] = {data: [] for name, _, data, _ in rows if name in groups}
    for name, row, data, _ in rows:
        if name not in groups and data in names:
            names[data].append(row.name)
    for data, missing in names.items():
        if missing:
            yield f"No runs yet{data and f' on {data}'} of {len(missing)} rows: {', '.join(missing)}."


@dataclass(frozen=True)
class Entry:
    """The subject of a row: an experiment and its runs."""

    name: str  # the name of the experiment
    group: Group
    row: Any  # its row in the paper's table
    data: str  # the paper's name of its data
    against: str  # the name of the experiment that it is compared with
    reference: Group | None  # the runs of that experiment; None if it is this one
    comparable: bool  # whether the runs are at the paper's own scale

    @property
    def printed(self) -> float | None:
        """The paper's error."""
        return published_error(self.name)

    def paper_difference(self, without: str = NOTHING) -> str:
        """Return the paper's error minus its error for the experiment that this one is compared with."""
        other = published_error(self.against)
        if self.printed is None or other is None or self.name == self.against:
            return without
        return signed(self.printed - other)


def error_cell(group: Group) -> Cell:
    """Return the mean test error, n, the interval, and the number of runs that are left out."""
    missing = [f"{count} {status}" for status in ("diverged", "unfinished") if (count := group.count(status))]
    if not group.errors:
        return Cell(NOTHING, ("n = 0", *missing))
    found = mean_with_interval(group.errors.values(), PERCENT)
    return Cell(percent(found.value), (f"n = {found.n}", span(found.interval), *missing))


def difference(entry: Entry) -> Cell:
    """Return the mean paired difference from the reference, with n and its 95 % interval."""
    if entry.reference is None:
        return Cell(NOTHING)
    found = paired_difference(entry.group.errors, entry.reference.errors)
    return difference_cell(found, found.interval(possible=PERCENT))


def difference_cell(found: Difference, interval: Interval | None) -> Cell:
    """Return a difference with n and an interval, which names its coverage if that is not 95 %."""
    if found.mean is None:
        return Cell(NOTHING)
    ends = "no interval"
    if interval is not None:
        ends = f"{signed(interval.low)} to {signed(interval.high)}"
        ends += "" if interval.coverage == COVERAGE else f" ({100 * interval.coverage:.3g} %)"
    return Cell(signed(found.mean), (f"n = {found.n}", ends))


def method(entry: Entry) -> Cell:
    """Return the paper's name of a row; at another scale, also the network and data used here."""
    config = entry.group.config
    return Cell(entry.row.method, () if entry.comparable else (f"here {config.model} on {dataset_name(config)}",))


def data(entry: Entry) -> Cell:
    """Return the data of the paper's row, and ours where they differ."""
    used = entry.group.config.dataset
    return Cell(entry.data, () if entry.name.endswith(f"/{used}") else (f"here {dataset_name(entry.group.config)}",))


def schedule(entry: Entry) -> Cell:
    """Return the paper's decays, and ours where they differ."""
    printed, config = entry.row.schedule, entry.group.config
    notes = () if config.decays == tuple(map(float, printed)) else (f"here {schedule_text(config)}",)
    return Cell(f"({', '.join(map(str, printed))})", notes)


def parameters(entry: Entry) -> Cell:
    """Return the paper's number of parameters, and ours."""
    counts = [run.field("parameters") for run in entry.group.runs]
    numbers = " or ".join(f"{count:,}" for count in sorted({count for count in counts if isinstance(count, int)}))
    return Cell(entry.row.parameters or NOTHING, (f"here {numbers}",) if numbers else ())


TABLE2_COLUMNS = (
    Column("Method", method, numeric=False),
    Column("Data", data, numeric=False),
    Column("Source", lambda e: e.row.reference, numeric=False),
    Column("Depth(-k)", lambda e: e.row.depth or NOTHING, numeric=False),
    Column("Params.", parameters),
)
TABLE3_COLUMNS = (
    Column("Method", method, numeric=False),
    Column("B", lambda e: str(e.row.batch_size)),
    Column("LR schedule", schedule, numeric=False),
    Column("Decay", lambda e: f"{e.row.decay:g}"),
)


def results(minus: str) -> tuple[Column, ...]:
    """Return the columns of the paper's errors and ours; `minus` names the row that is subtracted."""
    return (
        Column("Paper", lambda e: percent(e.printed), "error, %"),
        Column("Ours", lambda e: error_cell(e.group), "mean at the last epoch, n, 95 % interval"),
        Column("Paper", lambda e: e.paper_difference(), group=f"Minus {minus}"),
        Column("Ours", difference, "mean of pairs, n, 95 % interval", group=f"Minus {minus}"),
    )


def _time(group: Group) -> str:
    known = group.by_seed("seconds").values()
    return duration(sum(known) / len(known)) if known else NOTHING
