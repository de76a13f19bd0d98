"""Paired differences between groups of runs: what the runs allow to be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replenish.lab import paper
from replenish.lab.comparing.statistics import PERCENT, PairedDifference, holm, paired_difference, verdict
from replenish.lab.report.grouping import Group, mixed
from replenish.lab.report.words import dataset_name
from replenish.lab.show import Finding

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Pair:
    """Two groups to be compared, and the paper's difference, if it has one; `about` if it says that of an error."""

    first: Group
    second: Group
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
        named = replace(first, label=claim.first_label + where), replace(second, label=claim.second_label)
        pairs.append(Pair(*named, printed, about))
    return pairs


def order_pairs(orders: Mapping[str, Group]) -> list[Pair]:
    """Return every SRS order of a recipe against all others; without SRS, all against reshuffling or the first."""
    tried = [group for group in orders.values() if group.config.order == "srs"]
    others = [group for group in orders.values() if group.config.order != "srs"]
    if not tried:
        tried = [group for group in others if group.config.order != "reshuffling"]
        others = [group for group in others if group.config.order == "reshuffling"]
    if not others:
        others, tried = tried[:1], tried[1:]
    return [Pair(first, second) for first in tried for second in others]


def findings(pairs: Sequence[Pair], prefix: str, *, comparable: bool = False) -> tuple[Finding, ...]:
    """Return what the pairs allow to be said, with p-values adjusted for all of them together.

    If they are comparable, which is at the paper's own scale, its difference can lie outside of ours.
    """
    differences = [paired_difference(pair.first.errors, pair.second.errors, PERCENT) for pair in pairs]
    tested = [index for index, found in enumerate(differences) if found.p_value is not None]
    adjusted = dict(zip(tested, holm([differences[index].p_value or 0.0 for index in tested]), strict=True))
    made = []
    for index, (pair, found) in enumerate(zip(pairs, differences, strict=True)):
        p_adjusted, labels = adjusted.get(index), (pair.first.label, pair.second.label)
        sentence = verdict(found, *labels, adjusted_p=p_adjusted, comparisons=max(len(tested), 1))
        made.append(
            Finding(
                name=f"{prefix}-{index + 1}",
                first=pair.first.label,
                second=pair.second.label,
                sentence=sentence + left_out(pair) + mixed_words(pair),
                state=_state(found, p_adjusted),
                difference=found,
                adjusted_p=p_adjusted,
                paper=pair.paper,
                paper_sentence=_paper_sentence(pair, found, comparable),
                order=pair.first.config.order,
            )
        )
    return tuple(made)


def _state(found: PairedDifference, p_adjusted: float | None) -> str:
    if found.interval is None or p_adjusted is None:
        return "unknown"
    return "difference" if p_adjusted < SIGNIFICANT else "open"


def left_out(pair: Pair) -> str:
    """Return a sentence on the runs of a pair that have no error, or ""."""
    parts = [
        f"{count} {status} of {group.label}"
        for group in (pair.first, pair.second)
        for status in ("diverged", "unfinished")
        if (count := group.count(status))
    ]
    return f" Not in these numbers: {', '.join(parts)}." if parts else ""


def mixed_words(pair: Pair) -> str:
    """Return a sentence on what the runs of a pair were executed differently in, or ""."""
    parts = [f"{name} ({one} and {two})" for name, (one, two) in mixed(pair.first, pair.second).items()]
    return f" The two sides were not executed alike: they differ in {', '.join(parts)}." if parts else ""


def _paper_sentence(pair: Pair, found: PairedDifference, comparable: bool) -> str:
    if pair.paper is None:
        return ""
    place = "above" if pair.paper > 0 else "below"
    said = f"The paper reports {'about ' if pair.about else ''}{abs(pair.paper):.2f} points {place}"
    if comparable and found.interval is not None:
        inside = found.interval.low <= pair.paper <= found.interval.high
        return f"{said}, which lies {'inside' if inside else 'outside'} this interval."
    return f"{said}." if comparable else f"{said}, at its own scale."
