"""The tables of a report: which experiments are in them, and their columns.

A column is one declaration: its heading and its cell for an experiment. A new number of the results is one more column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replenish.lab import paper
from replenish.lab.config import RunConfig
from replenish.lab.paper import published_error
from replenish.lab.report.findings import Pair
from replenish.lab.report.grouping import Group, origins
from replenish.lab.report.text import dataset_name, duration, p_words, percent, schedule_words, span
from replenish.lab.show import NOTHING, Cell, Column, Finding, Table
from replenish.lab.statistics import PERCENT, Difference, mean_with_interval, paired_difference
from replenish.lab.verdict import signed

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
            (*TABLE3_COLUMNS, *results("WRN, 64, (120, 150, 175)", full)),
            "the paper's is on CIFAR-100",
        ),
        (
            "Table 2: test error of the methods",
            TABLE2,
            (*TABLE2_COLUMNS, *results("WRN 28-10", full)),
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
                remarks=list(_rows_without_runs(rows, groups)),
                origins=origins(entry.group for entry in entries),
            )


def short_table3(groups: Mapping[str, Group]) -> Table:
    """Return table 3 in few columns: the paper's beside ours, all of WRN-10-1, and the differences in each."""
    return Table(
        "short-table3",
        "Table 3 in miniature: test error, %",
        SHORT_TABLE3_COLUMNS,
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
        EXPERIMENTS_COLUMNS,
        [(label, Entry(label, group)) for label, group in groups.items()],
        caption="Test error in percent at the last epoch, over the seeds that finished.",
        origins=origins(groups.values()),
    )


def differences_table(made: Sequence[Finding], pairs: Sequence[Pair], name: str) -> Table:
    """Return the findings as a table: what was subtracted from what, and how sure it is."""
    return Table(
        name,
        "Paired differences",
        differences_columns(any(finding.paper is not None for finding in made)),
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


def _rows_without_runs(rows: Sequence[PaperRow], groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield which rows have no runs, for the data that have some."""
    names: dict[str, list[str]] = {data: [] for name, _, data, _ in rows if name in groups}
    for name, row, data, _ in rows:
        if name not in groups and data in names:
            names[data].append(row.name)
    for data, missing in names.items():
        if missing:
            yield f"No runs yet{data and f' on {data}'} of {len(missing)} rows: {', '.join(missing)}."


BEST_EPOCH = "(chosen on the test set, for information)"


@dataclass(frozen=True)
class Entry:
    """What a row is about: an experiment or an order, its runs, and the experiment that it is compared with.

    It has its row in the paper's table and the paper's name of its data, if there are any; `reference` are the runs of
    what it is compared with, unless it is that itself; `comparable`, whether runs are at the paper's own scale.
    """

    name: str
    group: Group
    row: Any = None
    data: str = ""
    against: str = ""
    reference: Group | None = None
    comparable: bool = False

    @property
    def printed(self) -> float | None:
        """The paper's error."""
        return published_error(self.name)

    def paper_difference(self, without: str = NOTHING) -> str:
        """Return the paper's error minus the one that it is compared with."""
        other = published_error(self.against)
        if self.printed is None or other is None or self.name == self.against:
            return without
        return signed(self.printed - other)


def estimated(
    title: str,
    note: str,
    number: str = "test_error",
    **options: Any,
) -> Column:
    """Return a column of a number of the results: its mean, n, the interval, and the runs that are not in it."""
    muted = options.pop("muted", False)

    def cell(entry: Entry) -> Cell:
        group, values = entry.group, entry.group.by_seed(number)
        missing = () if muted else _not_counted(group)
        if not values:
            return Cell(NOTHING, () if muted else ("n = 0", *missing), muted=muted)
        found = mean_with_interval(values.values(), PERCENT)
        return Cell(percent(found.value), (f"n = {found.n}", span(found.interval), *missing), muted=muted)

    return Column(title, cell, note, **options)


def _not_counted(group: Group) -> tuple[str, ...]:
    return tuple(f"{count} {status}" for status in ("diverged", "unfinished") if (count := group.count(status)))


def difference(entry: Entry) -> Cell:
    """Return the mean paired difference to the experiment compared with, with n and its 95 % interval."""
    if entry.reference is None:
        return Cell(NOTHING)
    return difference_cell(paired_difference(entry.group.errors, entry.reference.errors))


def difference_cell(found: Difference) -> Cell:
    """Return a difference with n and its interval."""
    if found.mean is None:
        return Cell(NOTHING)
    interval = found.interval(possible=PERCENT)
    ends = interval and f"{signed(interval.low)} to {signed(interval.high)}"
    return Cell(signed(found.mean), (f"n = {found.n}", ends or "no interval"))


def minus_paper(entry: Entry) -> Cell:
    """Return our mean minus the paper's error; at the paper's own scale with the interval, elsewhere in grey."""
    if entry.printed is None or not entry.group.errors:
        return Cell(NOTHING, muted=True)
    found, printed = mean_with_interval(entry.group.errors.values(), PERCENT), entry.printed
    text = signed(found.value - printed)
    if not entry.comparable:
        return Cell(text, muted=True)
    if found.interval is None:
        return Cell(text, (f"n = {found.n}", "no interval"))
    low, high = signed(found.interval.low - printed), signed(found.interval.high - printed)
    return Cell(text, (f"n = {found.n}", f"{low} to {high}"))


def here(printed: str, used: str) -> Cell:
    """Return a setting as the paper prints it, and beneath it as it was here, where that differs."""
    return Cell(printed, () if printed == used else (f"here {used}",))


def method(entry: Entry) -> Cell:
    """Return the paper's name of a row; at another scale than its own, also the network and data used here."""
    config = entry.group.config
    return Cell(entry.row.method, () if entry.comparable else (f"here {config.model} on {dataset_name(config)}",))


def data(entry: Entry) -> Cell:
    """Return the data of the paper's row; beneath them ours, where they are others."""
    used = entry.group.config.dataset
    return Cell(entry.data, () if entry.name.endswith(f"/{used}") else (f"here {dataset_name(entry.group.config)}",))


def schedule(entry: Entry) -> Cell:
    """Return the paper's decays; beneath them ours, where they are others."""
    printed, config = entry.row.schedule, entry.group.config
    notes = () if config.decays == tuple(map(float, printed)) else (f"here {schedule_words(config)}",)
    return Cell(f"({', '.join(map(str, printed))})", notes)


def parameters(entry: Entry) -> Cell:
    """Return the paper's number of parameters; beneath it ours."""
    counts = [run.told("parameters") for run in entry.group.runs]
    numbers = " or ".join(f"{count:,}" for count in sorted({count for count in counts if isinstance(count, int)}))
    return Cell(entry.row.parameters or NOTHING, (f"here {numbers}",) if numbers else ())


#: What the rows of the paper's tables are.
TABLE2_COLUMNS = (
    Column("Method", method, numeric=False),
    Column("Data", data, numeric=False),
    Column("Source", lambda e: e.row.reference, numeric=False, brief=False),
    Column("Depth(-k)", lambda e: e.row.depth or NOTHING, numeric=False, brief=False),
    Column("Params.", parameters, brief=False),
)
TABLE3_COLUMNS = (
    Column("Method", method, numeric=False),
    Column("B", lambda e: here(str(e.row.batch_size), str(e.group.config.batch_size))),
    Column("LR schedule", schedule, numeric=False),
    Column("Decay", lambda e: here(f"{e.row.decay:g}", f"{e.group.config.decay_factor:g}")),
)
OURS = estimated("Ours", "mean at the last epoch, n, 95 % interval")
BEST = estimated("Best epoch", BEST_EPOCH, number="best_test_error", muted=True, brief=False)


def results(minus: str, comparable: bool) -> tuple[Column, ...]:
    """Return what the paper and our runs say of a row; `minus` names the row that differences are taken to."""
    note = "mean, n, interval" if comparable else "not comparable at this scale"
    return (
        Column("Paper", lambda e: percent(e.printed), "error, %"),
        OURS,
        Column("Paper", lambda e: e.paper_difference(), group=f"Minus {minus}"),
        Column("Ours", difference, "mean of pairs, n, 95 % interval", group=f"Minus {minus}"),
        BEST,
        Column("Ours − paper", minus_paper, note, brief=False),  # noqa: RUF001
    )


def _short_mean(entry: Entry) -> str:
    """Return the mean alone: means can be subtracted, and the interval that says something is that of the pairs."""
    errors = entry.group.errors.values()
    return percent(mean_with_interval(errors).value) if errors else NOTHING


def _short_difference(entry: Entry) -> str:
    if entry.reference is None:
        return "" if entry.name == entry.against else NOTHING
    found = paired_difference(entry.group.errors, entry.reference.errors)
    interval = found.interval(possible=PERCENT)
    ends = interval and f" [{signed(interval.low)}, {signed(interval.high)}]"
    return NOTHING if found.mean is None else signed(found.mean) + (ends or "")


#: Table 3 in few columns, for the README and a terminal.
SHORT_TABLE3_COLUMNS = (
    Column("sampling", lambda e: "SRS" if e.row.method == "WRN-SRS" else "reshuffling", numeric=False),
    Column("B", lambda e: str(e.row.batch_size)),
    Column("decays", lambda e: f"{'-'.join(map(str, e.row.schedule))}, x{e.row.decay:g}", numeric=False),
    Column("paper", lambda e: percent(e.printed), "WRN-28-10", brief=False),
    Column("minus row 3", lambda e: e.paper_difference(""), brief=False),
    Column("ours", _short_mean, "WRN-10-1"),
    Column("minus row 3, paired", _short_difference),
)


def _time(entry: Entry) -> str:
    known = entry.group.by_seed("seconds").values()
    return duration(sum(known) / len(known)) if known else NOTHING


#: One row for each order, or each experiment that no table of the paper has.
EXPERIMENTS_COLUMNS = (
    Column("Order", lambda e: e.name, numeric=False),
    estimated("Mean", "n, 95 % interval"),
    BEST,
    Column("Time", _time, "a run, mean"),
)


def differences_columns(with_paper: bool) -> list[Column]:
    """Return the columns of a table of findings."""
    paper = Column("Paper", lambda f: signed(f.paper), "points")
    return [
        Column("First minus second", lambda f: f"{f.verdict.first} minus {f.verdict.second}", numeric=False),
        *([paper] if with_paper else []),
        Column("Ours", lambda f: difference_cell(f.verdict.difference), "mean of pairs, n, 95 % interval"),
        Column("p", lambda f: p_words(f.verdict.difference.p_value), "paired t-test"),
        Column("p, Holm", lambda f: p_words(f.verdict.adjusted_p), "all rows together"),
        Column("Verdict", lambda f: f.verdict.outcome, numeric=False),
    ]
