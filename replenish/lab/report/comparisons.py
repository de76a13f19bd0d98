"""Paired differences between groups of runs: the findings of a report, and the table of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replenish.lab.experiments import paper
from replenish.lab.report.cells import dataset_name, difference_cell
from replenish.lab.report.document import NOTHING, Cell, Column, Finding, Row, Table
from replenish.lab.report.grouping import Group, origins
from replenish.lab.statistics import PairedDifference, holm, paired_difference, signed, verdict

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two groups to be compared, with what they are called and the paper's difference, if it has one."""

    first: Group
    second: Group
    first_label: str
    second_label: str
    paper: float | None = None
    about: bool = False


def claims(groups: Mapping[str, Group]) -> list[Pair]:
    """Return the paper's claims for which both sides have runs; each pair of groups once."""
    pairs: list[Pair] = []
    seen = set()
    for claim in paper.CLAIMS:
        first, second = groups.get(claim.first), groups.get(claim.second)
        if first is None or second is None or (first.config, second.config) in seen:
            continue
        seen.add((first.config, second.config))
        numbers = [paper.published_error(name) for name in (claim.first, claim.second)]
        printed = None if None in numbers else numbers[0] - numbers[1]  # type: ignore[operator]
        about = claim.first in paper.FIGURE3_ERRORS
        where = ""
        if claim.first.startswith("table2/"):
            labels = {data.name: data.label for data in paper.TABLE1}
            where = f" on {labels.get(first.config.dataset, dataset_name(first.config))}"
        pairs.append(Pair(first, second, claim.first_label + where, claim.second_label, printed, about))
    return pairs


def sampler_pairs(samplers: Mapping[str, Group]) -> list[Pair]:
    """Return every SRS sampler of a recipe against every other kind; without SRS, the others against reshuffling."""
    tried = [group for group in samplers.values() if group.config.order == "srs"]
    others = [group for group in samplers.values() if group.config.order != "srs"]
    if not tried:
        tried = [group for group in others if group.config.order != "reshuffling"]
        others = [group for group in others if group.config.order == "reshuffling"]
    return [Pair(first, second, first.label, second.label) for first in tried for second in others]


def findings(pairs: Sequence[Pair], prefix: str, *, comparable: bool = False) -> tuple[Finding, ...]:
    """Return what the pairs allow to be said, with p-values adjusted for all of them together.

    Args:
        pairs: What is compared.
        prefix: The beginning of the findings' names.
        comparable: Whether the runs are at the paper's own scale, so that its difference can lie outside ours.
    """
    differences = [paired_difference(pair.first.errors, pair.second.errors) for pair in pairs]
    tested = [index for index, found in enumerate(differences) if found.p_value is not None]
    adjusted = dict(zip(tested, holm([differences[index].p_value or 0.0 for index in tested]), strict=True))
    made = []
    for index, (pair, found) in enumerate(zip(pairs, differences, strict=True)):
        p_adjusted = adjusted.get(index)
        sentence = verdict(
            found, pair.first_label, pair.second_label, adjusted_p=p_adjusted, comparisons=max(len(tested), 1)
        )
        made.append(
            Finding(
                name=f"{prefix}-{index + 1}",
                first=pair.first_label,
                second=pair.second_label,
                sentence=sentence + _left_out(pair),
                paper=pair.paper,
                paper_sentence=_paper_sentence(pair, found, comparable),
                state=_state(found, p_adjusted),
                mean=found.mean,
                low=None if found.interval is None else found.interval.low,
                high=None if found.interval is None else found.interval.high,
                n=found.n,
                p_value=found.p_value,
                adjusted_p=p_adjusted,
            )
        )
    return tuple(made)


def _state(found: PairedDifference, p_adjusted: float | None) -> str:
    if found.interval is None or p_adjusted is None:
        return "unknown"
    return "difference" if p_adjusted < SIGNIFICANT else "open"


def _left_out(pair: Pair) -> str:
    parts = [
        f"{count} {status} of {label}"
        for label, group in ((pair.first_label, pair.first), (pair.second_label, pair.second))
        for status in ("diverged", "unfinished")
        if (count := group.count(status))
    ]
    return f" Not in these numbers: {', '.join(parts)}." if parts else ""


def _paper_sentence(pair: Pair, found: PairedDifference, comparable: bool) -> str:
    if pair.paper is None:
        return ""
    place = "above" if pair.paper > 0 else "below"
    said = f"The paper reports {'about ' if pair.about else ''}{abs(pair.paper):.2f} points {place}"
    if comparable and found.interval is not None:
        inside = found.interval.low <= pair.paper <= found.interval.high
        return f"{said}, which lies {'inside' if inside else 'outside'} this interval."
    return f"{said}." if comparable else f"{said}, at its own scale."


def differences_table(made: Sequence[Finding], pairs: Sequence[Pair], name: str) -> Table:
    """Return the findings as a table: what was subtracted from what, and how sure it is."""
    with_paper = any(finding.paper is not None for finding in made)
    columns = [Column("First minus second")]
    if with_paper:
        columns.append(Column("Paper", "points", numeric=True))
    columns += [
        Column("Ours", "mean of pairs, n, 95 % interval", numeric=True),
        Column("p", "paired t-test", numeric=True),
        Column("p, Holm", "all rows together", numeric=True),
    ]
    rows = []
    for finding, pair in zip(made, pairs, strict=True):
        cells = [Cell(f"{finding.first} minus {finding.second}")]
        if with_paper:
            cells.append(Cell(NOTHING if finding.paper is None else signed(finding.paper)))
        difference = paired_difference(pair.first.errors, pair.second.errors)
        cells += [difference_cell(difference), Cell(_p(finding.p_value)), Cell(_p(finding.adjusted_p))]
        rows.append(Row(finding.name, tuple(cells)))
    return Table(
        name=name,
        title="Paired differences",
        caption="Test error at the last epoch, in points, seed by seed; below zero the first is better.",
        columns=tuple(columns),
        rows=tuple(rows),
        origins=origins(group for pair in pairs for group in (pair.first, pair.second)),
    )


def _p(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
