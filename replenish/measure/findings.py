"""`Finding`: one judgement on something measured, shared by the audit and the shuffle battery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

OK, WARNING, FAULT = LEVELS = ("ok", "warning", "fault")


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Attributes:
        name: What was asked, in a word or two.
        level: `"ok"`, `"warning"` or `"fault"`.
        sentence: What was found, with numbers, and what to do about it.
        numbers: The numbers, by name.
        effect: How large the departure is, where the question has an effect size; None otherwise.
        p: How likely chance alone is to show as much, where that is known; None otherwise.
    """

    name: str
    level: str
    sentence: str
    numbers: dict[str, int | float] = field(default_factory=dict)
    effect: float | None = None
    p: float | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level should be one of {', '.join(LEVELS)}, but got {self.level!r}")


def worst_level(findings: Iterable[Finding]) -> str:
    """Return the worst level of some findings; `"ok"` if there are none."""
    return max((finding.level for finding in findings), key=LEVELS.index, default=OK)


def finding_named(name: str, findings: Sequence[Finding]) -> Finding:
    """Return the finding with this name, or raise an error that lists the names."""
    for finding in findings:
        if finding.name == name:
            return finding
    known = ", ".join(finding.name for finding in findings)
    raise KeyError(f"name should be one of {known}, but got {name!r}")
