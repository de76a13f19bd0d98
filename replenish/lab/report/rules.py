"""The rules that were stated for runs, so that a report judges them by the same margin as whoever made them.

A comparison writes its rule beside its page (`compare-*.json`). A folder of runs can state one for all runs below it in
`rule.json`, such as `{"margin": 0.5, "equivalence_coverage": 0.9}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from replenish.lab.report.grouping import Group
from replenish.lab.statistics import PERCENT
from replenish.lab.verdict import Rule

RULE, COMPARISONS = "rule.json", "compare-*.json"
#: The field of a result that a report judges; rules about another metric do not apply.
FIELD = "test_error"
PLAIN = Rule(possible=PERCENT, unit="points")


@dataclass(frozen=True)
class Rules:
    """The rule of each pair of groups: that of their comparison, else that of their folder, else without a margin."""

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
    """Return the rules that are stated below a directory.

    Raises:
        ValueError: A file should state a rule, and does not.
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
