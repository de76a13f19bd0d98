"""Table 3 in seven columns, for the README and for a terminal: the paper's beside ours, and the differences in each."""

from __future__ import annotations

from collections.abc import Mapping

from replenish.lab.experiments import paper
from replenish.lab.report.document import NOTHING
from replenish.lab.report.grouping import Group
from replenish.lab.statistics import median_with_interval, paired_difference, signed

HEADINGS = (
    "sampling",
    "B",
    "decays",
    "paper, WRN-28-10",
    "minus row 3",
    "ours, WRN-10-1",
    "minus row 3, paired",
)
CAPTION = "medians with smallest and largest, differences with 95 % intervals"


def short_table3(groups: Mapping[str, Group]) -> list[tuple[str, ...]]:
    """Return the rows of table 3, each with a cell for each of `HEADINGS`.

    Args:
        groups: The runs by the name of their experiment, all of one scale with the network WRN-10-1.
    """
    published = {row.name: row.error for row in paper.TABLE3}[paper.TABLE3_REFERENCE]
    reference = groups.get(paper.TABLE3_REFERENCE)
    rows: list[tuple[str, ...]] = []
    for row in paper.TABLE3:
        group = groups.get(row.name)
        is_reference = row.name == paper.TABLE3_REFERENCE
        sampling = "SRS" if row.method == "WRN-SRS" else "reshuffling"
        decays = f"{'-'.join(map(str, row.schedule))}, x{row.decay:g}"
        rows.append(
            (
                sampling,
                str(row.batch_size),
                decays,
                f"{row.error:.2f}",
                "" if is_reference else signed(row.error - published),
                _median(group),
                "" if is_reference else _difference(group, reference),
            )
        )
    return rows


def _median(group: Group | None) -> str:
    if group is None or not group.errors:
        return NOTHING
    found = median_with_interval(group.errors.values())
    ends = found.interval
    return f"{found.value:.2f}" + ("" if ends is None else f" [{ends.low:.2f}, {ends.high:.2f}]")


def _difference(group: Group | None, reference: Group | None) -> str:
    if group is None or reference is None:
        return NOTHING
    found = paired_difference(group.errors, reference.errors)
    if found.mean is None:
        return NOTHING
    ends = found.interval
    return signed(found.mean) + ("" if ends is None else f" [{signed(ends.low)}, {signed(ends.high)}]")
