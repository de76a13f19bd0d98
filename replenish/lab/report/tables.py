"""Tables 2 and 3 in the paper's layout: what the paper prints, what our runs gave, and the difference."""

from __future__ import annotations

from collections.abc import Mapping

from replenish.lab.experiments import paper
from replenish.lab.report.cells import (
    best_cell,
    dataset_name,
    difference_cell,
    listed,
    median_cell,
    percent,
    schedule_words,
)
from replenish.lab.report.document import NOTHING, Cell, Column, Row, Table
from replenish.lab.report.grouping import Group, origins
from replenish.lab.statistics import median_with_interval, paired_difference, signed

#: The only scale whose errors can be set against the paper's.
FULL_SCALE = "full"
BEST_EPOCH = "best epoch (chosen on the test set, for information)"
_OURS = Column("Ours", "median at the last epoch, n, interval (coverage)", numeric=True)


def table3(groups: Mapping[str, Group], scale: str) -> Table | None:
    """Return table 3 over the rows that have runs, or None if none has.

    Args:
        groups: The groups by the name of their experiment.
        scale: The scale that they were run at.
    """
    shown = [row for row in paper.TABLE3 if row.name in groups]
    if not shown:
        return None
    reference = groups.get(paper.TABLE3_REFERENCE)
    printed = paper.published_error(paper.TABLE3_REFERENCE)
    assert printed is not None
    rows = []
    for row in shown:
        group = groups[row.name]
        within = _within(group, reference)
        cells = (
            Cell(row.method, _network_note(group, scale)),
            Cell(str(row.batch_size), _here(str(group.config.batch_size), str(row.batch_size))),
            Cell(f"({listed(map(str, row.schedule))})", _schedule_note(group, row.schedule)),
            Cell(f"{row.decay:g}", _here(f"{group.config.decay_factor:g}", f"{row.decay:g}")),
            Cell(percent(row.error)),
            median_cell(group),
            Cell(NOTHING if row.name == paper.TABLE3_REFERENCE else signed(row.error - printed)),
            within,
            best_cell(group),
            _minus_paper(group, row.error, scale),
        )
        rows.append(Row(row.name, cells))
    group_head = "Minus WRN, 64, (120, 150, 175)"
    columns = (
        Column("Method"),
        Column("B", numeric=True),
        Column("LR schedule"),
        Column("Decay", numeric=True),
        Column("Paper", "error, %", numeric=True),
        _OURS,
        Column("Paper", group=group_head, numeric=True),
        Column("Ours", "mean of pairs, n, 95 % interval", group=group_head, numeric=True),
        Column("Best epoch", BEST_EPOCH.removeprefix("best epoch "), numeric=True),
        _minus_paper_column(scale),
    )
    return Table(
        name=f"{scale}-table3",
        title="Table 3: WRN and WRN-SRS with different configurations",
        caption=f"Test error in percent; the paper's is on CIFAR-100{_scale_words(scale)}.",
        columns=columns,
        rows=tuple(rows),
        remarks=_missing([row.name for row in paper.TABLE3 if row.name not in groups]),
        origins=origins(groups[row.name] for row in shown),
    )


def table2(groups: Mapping[str, Group], scale: str) -> Table | None:
    """Return table 2 over the rows that have runs on either dataset, or None if none has.

    Args:
        groups: The groups by the name of their experiment.
        scale: The scale that they were run at.
    """
    names = {row.name: [f"table2/{row.name}/{data.name}" for data in paper.TABLE1] for row in paper.TABLE2}
    shown = [row for row in paper.TABLE2 if any(name in groups for name in names[row.name])]
    if not shown:
        return None
    rows = []
    for row in shown:
        present = [groups[name] for name in names[row.name] if name in groups]
        cells = [
            Cell(row.method, () if scale == FULL_SCALE else (f"here {present[0].config.model}",)),
            Cell(row.reference, (f"median of {paper.MEDIAN_OF}",) if row.ours else ()),
            Cell(row.depth or NOTHING),
            Cell(row.parameters or NOTHING, _parameters_note(present)),
        ]
        for data in paper.TABLE1:
            cells += _dataset_cells(groups, row, data, scale)
        rows.append(Row(f"table2/{row.name}", tuple(cells)))
    columns = [Column("Method"), Column("Source"), Column("Depth(-k)"), Column("Params.", numeric=True)]
    for data in paper.TABLE1:
        head = data.label.replace("CIFAR", "C")
        columns += [
            Column("Paper", group=head, numeric=True),
            Column(_OURS.title, "median, n, interval; best epoch", group=head, numeric=True),
            Column("Difference", "to WRN" if scale != FULL_SCALE else "ours − paper", group=head, numeric=True),  # noqa: RUF001
        ]
    return Table(
        name=f"{scale}-table2",
        title="Table 2: test error of the methods",
        caption=(
            f"Test error in percent{_scale_words(scale)}. Ours is at the last epoch; beneath it the {BEST_EPOCH}. "
            "Differences to WRN are those to the row WRN 28-10 of the same dataset; ours is the mean over pairs of "
            "seeds, with n and its 95 % interval."
        ),
        columns=tuple(columns),
        rows=tuple(rows),
        remarks=tuple(
            remark
            for data in paper.TABLE1
            for remark in _missing(
                [row.name for row in paper.TABLE2 if f"table2/{row.name}/{data.name}" not in groups],
                f" on {data.label}",
            )
        ),
        origins=origins(group for row in shown for name in names[row.name] if (group := groups.get(name))),
    )


def _dataset_cells(
    groups: Mapping[str, Group], row: paper.Table2Row, data: paper.Dataset, scale: str
) -> tuple[Cell, Cell, Cell]:
    name = f"table2/{row.name}/{data.name}"
    reference = f"table2/{paper.TABLE2_REFERENCE}/{data.name}"
    printed = paper.published_error(name)
    group = groups.get(name)
    if group is None:
        return Cell(percent(printed)), Cell(NOTHING, ("no runs",)), Cell(NOTHING)
    ours, best = median_cell(group), best_cell(group)
    here = () if group.config.dataset == data.name else (f"here on {dataset_name(group.config)}",)
    ours = Cell(ours.text, (*ours.notes, f"best epoch {best.text}", *here))
    absolute = _minus_paper(group, printed, scale)
    within = _within(group, groups.get(reference))
    other = paper.published_error(reference)
    said: tuple[str, ...] = ()
    if name != reference and printed is not None and other is not None:
        said = (f"paper {signed(printed - other)}",)
    if scale == FULL_SCALE:
        to_wrn = () if within.text == NOTHING else (f"to WRN {within.text}", *within.notes, *said)
        return Cell(percent(printed)), ours, Cell(absolute.text, (*absolute.notes, *to_wrn))
    note = () if absolute.text == NOTHING else (f"ours − paper {absolute.text}", "(not comparable)")  # noqa: RUF001
    return Cell(percent(printed)), ours, Cell(within.text, (*within.notes, *said, *note))


def _within(group: Group, reference: Group | None) -> Cell:
    if reference is None or group.config == reference.config:
        return Cell(NOTHING)
    return difference_cell(paired_difference(group.errors, reference.errors))


def _minus_paper(group: Group, printed: float | None, scale: str) -> Cell:
    """Return our median minus the paper's error; at the paper's own scale with the interval, elsewhere in grey."""
    if printed is None or not group.errors:
        return Cell(NOTHING, muted=True)
    found = median_with_interval(group.errors.values())
    text = signed(found.value - printed)
    if scale != FULL_SCALE:
        return Cell(text, muted=True)
    if found.interval is None:
        return Cell(text, (f"n = {found.n}", "no interval"))
    low, high = signed(found.interval.low - printed), signed(found.interval.high - printed)
    return Cell(text, (f"n = {found.n}", f"{low} to {high} ({100 * found.interval.coverage:.4g} %)"))


def _minus_paper_column(scale: str) -> Column:
    note = "median, n, interval" if scale == FULL_SCALE else "not comparable at this scale"
    return Column("Ours − paper", note, numeric=True)  # noqa: RUF001


def _scale_words(scale: str) -> str:
    return "" if scale == FULL_SCALE else f"; ours at the scale {scale}, so only differences within the table compare"


def _network_note(group: Group, scale: str) -> tuple[str, ...]:
    return () if scale == FULL_SCALE else (f"here {group.config.model} on {dataset_name(group.config)}",)


def _parameters_note(groups: list[Group]) -> tuple[str, ...]:
    counts = {(run.result or {}).get("parameters") for group in groups for run in group.runs}
    numbers = sorted(count for count in counts if isinstance(count, int))
    return (f"here {' or '.join(f'{count:,}' for count in numbers)}",) if numbers else ()


def _schedule_note(group: Group, schedule: tuple[int, ...]) -> tuple[str, ...]:
    return () if group.config.decays == tuple(map(float, schedule)) else (f"here {schedule_words(group.config)}",)


def _here(ours: str, printed: str) -> tuple[str, ...]:
    return () if ours == printed else (f"here {ours}",)


def _missing(names: list[str], where: str = "") -> tuple[str, ...]:
    return (f"No runs yet{where} of {len(names)} rows: {listed(names)}.",) if names else ()
