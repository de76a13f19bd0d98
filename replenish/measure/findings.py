"""`Finding`: one judgement on something measured, for the audit and the shuffle battery."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from replenish.notebook import html_table

OK, WARNING, FAULT = LEVELS = ("ok", "warning", "fault")


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Attributes:
        name: The question, in a word or two.
        level: `"ok"`, `"warning"` or `"fault"`.
        sentence: What was found, with numbers, and what to do about it.
        numbers: The numbers, by name.
        effect: The effect size; None if the question has none.
        p: The probability of at least this effect by chance alone; None if it is not known.
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


class Findings:
    """A base class of dataclasses with `findings`: their worst level, and their text and HTML."""

    findings: tuple[Finding, ...]

    @property
    def level(self) -> str:
        """The worst level of all findings: `"ok"`, `"warning"` or `"fault"`."""
        return max((finding.level for finding in self.findings), key=LEVELS.index, default=OK)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        known = ", ".join(finding.name for finding in self.findings)
        raise KeyError(f"name should be one of {known}, but got {name!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings, numbers, lists and dicts, ready for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        own = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {**own, "level": self.level, "findings": findings}

    def _title(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        wide = max((len(finding.name) for finding in self.findings), default=0)
        lines = [f"  {found.level:7}  {found.name:{wide}}  {found.sentence}" for found in self.findings]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return html_table(self._title(), [(found.level, found.name, found.sentence) for found in self.findings])
