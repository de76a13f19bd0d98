"""The verdicts of a report: which groups of runs are compared, and by which rule.

A comparison writes its rule next to its page (`compare-*.json`). For other runs, `rule.json` in a folder states the
rule of all runs below it, such as `{"margin": 0.5, "equivalence_coverage": 0.9}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

from replenish.lab import paper
from replenish.lab.report.grouping import Group, execution_differences
from replenish.lab.report.text import dataset_name
from replenish.lab.show import Finding
from replenish.lab.statistics import PERCENT, paired_difference
from replenish.lab.verdict import Rule, Verdict, decide_together

RULE, COMPARISONS = "rule.json", "compare-*.json"
#: The number that a report judges; rules about another metric do not apply.
FIELD = "test_error"
PLAIN = Rule(possible=PERCENT, unit="points")


@dataclass(frozen=True)
class Rules:
    """The rule of each pair of groups: their comparison's, else their folder's, else one without a margin."""

    by_pair: Mapping[frozenset[str], Rule] = field(default_factory=dict)
    by_folder: Mapping[str, Rule] = field(default_factory=dict)

    def of(self, first: Group, second: Group) -> Rule:
        """Return the rule for two groups."""
        if (stated := self.by_pair.get(frozenset((first.config.slug, second.config.slug)))) is not None:
            return stated
        paths = [run.path for group in (first, second) for run in group.runs]
        folders = {self._folder(path) for path in paths}
        return self.by_folder.get(folders.pop(), PLAIN) if len(folders) == 1 else PLAIN

    def _folder(self, path: str) -> str:
        """Return the nearest folder above a run that states a rule; "" if none does."""
        above = (str(parent) for parent in PurePosixPath(path).parents)
        return next((folder for folder in above if folder in self.by_folder), "")


def read_rules(directory: str | os.PathLike[str]) -> Rules:
    """Return the rules that files below a directory state.

    Raises:
        ValueError: A file does not state a rule.
    """
    root = Path(directory)
    by_folder = {
        path.parent.relative_to(root).as_posix(): _rule(path, _read(path)) for path in sorted(root.rglob(RULE))
    }
    by_pair: dict[frozenset[str], Rule] = {}
    for path in sorted(root.rglob(COMPARISONS), key=lambda path: path.stat().st_mtime_ns):
        answer = _read(path)
        slugs = answer.get("configs", {})
        if answer.get("field") == FIELD and isinstance(slugs, dict) and "rule" in answer:
            first, *others = slugs.values()
            by_pair |= {frozenset((first, other)): _rule(path, answer["rule"]) for other in others}
    return Rules(by_pair, by_folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(f"{path} should hold JSON, but is garbled; remove it or write it again") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds {type(values).__name__}")
    return values


def _rule(path: Path, values: Any) -> Rule:
    known = {each.name for each in fields(Rule)} - {"possible", "higher_is_better", "unit"}
    if not isinstance(values, dict):
        raise ValueError(f"{path} should state a rule, but states {values!r:.60}")
    if odd := set(values) - known - {"higher_is_better", "unit"}:
        raise ValueError(f"{path} should state {', '.join(sorted(known))}, but states {', '.join(sorted(odd))}")
    try:
        return Rule(possible=PERCENT, unit="points", **{name: values[name] for name in known if name in values})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} should state a rule, but: {error}") from None


@dataclass(frozen=True)
class Pair:
    """Two groups to compare, and the paper's difference if it reports one; `about` if it says "about"."""

    first: Group
    second: Group
    paper: float | None = None
    about: bool = False


def claims(groups: Mapping[str, Group]) -> list[Pair]:
    """Return the paper's claims for which both sides have runs, without repeated pairs."""
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
    """Return the pairs of a recipe's orders to compare.

    Each SRS order is compared with each order that is not SRS. Without SRS, all are compared with reshuffling, or else
    with the first.
    """
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

    If the pairs are at the paper's own scale (`comparable`), the finding says whether the paper's difference is inside
    the interval.
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
            remark=_remark(pair, verdict),
            paper=pair.paper,
            paper_sentence=_paper_sentence(pair, verdict, comparable),
            order=pair.first.config.order,
        )
        for number, (pair, verdict) in enumerate(zip(pairs, judged, strict=True), start=1)
    )


def _remark(pair: Pair, verdict: Verdict) -> str:
    warning = f"{verdict.warning[0].upper()}{verdict.warning[1:]}." if verdict.warning else ""
    return " ".join(filter(None, [warning, _left_out(pair), execution_text(pair.first, pair.second)]))


def _left_out(pair: Pair) -> str:
    """Return a sentence on the runs of a pair without an error, or ""."""
    parts = [
        f"{count} {status} of {group.label}"
        for group in (pair.first, pair.second)
        for status in ("diverged", "unfinished")
        if (count := group.count(status))
    ]
    return f"Not in these numbers: {', '.join(parts)}." if parts else ""


def execution_text(first: Group, second: Group) -> str:
    """Return a sentence on how the runs of two groups were executed differently, or ""."""
    parts = [f"{name} ({one} and {two})" for name, (one, two) in execution_differences(first, second).items()]
    return f"The two sides were not executed alike: they differ in {', '.join(parts)}." if parts else ""


def _paper_sentence(pair: Pair, verdict: Verdict, comparable: bool) -> str:
    if pair.paper is None:
        return ""
    place = "above" if pair.paper > 0 else "below"
    sentence = f"The paper reports {'about ' if pair.about else ''}{abs(pair.paper):.2f} points {place}"
    if comparable and verdict.interval is not None:
        inside = verdict.interval.low <= pair.paper <= verdict.interval.high
        return f"{sentence}, which lies {'inside' if inside else 'outside'} this interval."
    return f"{sentence}." if comparable else f"{sentence}, at its own scale."
