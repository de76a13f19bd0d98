"""The verdicts of a report: which groups of runs are compared, and by which rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replenish.lab import paper
from replenish.lab.report.grouping import Group, mixed
from replenish.lab.report.rules import Rules
from replenish.lab.report.words import dataset_name
from replenish.lab.show import Finding
from replenish.lab.statistics import paired_difference
from replenish.lab.verdict import Verdict, decide_together


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


def findings(
    pairs: Sequence[Pair], prefix: str, rules: Rules | None = None, *, comparable: bool = False
) -> tuple[Finding, ...]:
    """Return the verdict on each pair, with p-values adjusted for all of them together.

    If the pairs are comparable to the paper's, which they are at its own scale only, its difference can lie outside the
    interval.
    """
    rules = rules or Rules()
    judged = decide_together(
        [paired_difference(pair.first.errors, pair.second.errors) for pair in pairs],
        [rules.of(pair.first, pair.second) for pair in pairs],
        [(pair.first.label, pair.second.label) for pair in pairs],
    )
    return tuple(
        Finding(
            name=f"{prefix}-{number}",
            verdict=verdict,
            remark=" ".join(filter(None, [_doubt(verdict), left_out(pair), mixed_words(pair)])),
            paper=pair.paper,
            paper_sentence=_paper_sentence(pair, verdict, comparable),
            order=pair.first.config.order,
        )
        for number, (pair, verdict) in enumerate(zip(pairs, judged, strict=True), start=1)
    )


def _doubt(verdict: Verdict) -> str:
    return f"{verdict.warning[0].upper()}{verdict.warning[1:]}." if verdict.warning else ""


def left_out(pair: Pair) -> str:
    """Return a sentence on the runs of a pair that have no error, or ""."""
    parts = [
        f"{count} {status} of {group.label}"
        for group in (pair.first, pair.second)
        for status in ("diverged", "unfinished")
        if (count := group.count(status))
    ]
    return f"Not in these numbers: {', '.join(parts)}." if parts else ""


def mixed_words(pair: Pair) -> str:
    """Return a sentence on what the runs of a pair were executed differently in, or ""."""
    parts = [f"{name} ({one} and {two})" for name, (one, two) in mixed(pair.first, pair.second).items()]
    return f"The two sides were not executed alike: they differ in {', '.join(parts)}." if parts else ""


def _paper_sentence(pair: Pair, verdict: Verdict, comparable: bool) -> str:
    if pair.paper is None:
        return ""
    place = "above" if pair.paper > 0 else "below"
    said = f"The paper reports {'about ' if pair.about else ''}{abs(pair.paper):.2f} points {place}"
    if comparable and verdict.interval is not None:
        inside = verdict.interval.low <= pair.paper <= verdict.interval.high
        return f"{said}, which lies {'inside' if inside else 'outside'} this interval."
    return f"{said}." if comparable else f"{said}, at its own scale."
