"""The answer of an audit: a level and a sentence for each question, as text, HTML and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from replenish.measure.findings import FAULT as FAULT
from replenish.measure.findings import OK as OK
from replenish.measure.findings import WARNING as WARNING
from replenish.measure.findings import Finding as Finding
from replenish.measure.findings import finding_named, worst_level


@dataclass(frozen=True)
class Audit:
    """What `audit` found; print it, show it in a notebook, or take `to_dict` for JSON.

    Attributes:
        subject: What was audited, in a line.
        findings: One for each question that could be asked.
    """

    subject: str
    findings: tuple[Finding, ...]

    @property
    def level(self) -> str:
        """The worst level of all findings."""
        return worst_level(self.findings)

    def __getitem__(self, name: str) -> Finding:
        return finding_named(name, self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings, numbers, lists and dicts, ready for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        return {"subject": self.subject, "level": self.level, "findings": findings}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Audit:
        """Return the audit whose `to_dict` returned this."""
        return cls(plain["subject"], tuple(Finding(**each) for each in plain["findings"]))

    def __repr__(self) -> str:
        wide = max((len(finding.name) for finding in self.findings), default=0)
        lines = [f"{self.subject}: {self.level}"]
        lines += [f"  {found.level:7}  {found.name:{wide}}  {found.sentence}" for found in self.findings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        colours = {OK: "#2e7d32", WARNING: "#b26a00", FAULT: "#c62828"}
        rows = "".join(
            f'<tr><td style="color:{colours[found.level]};white-space:nowrap"><b>{escape(found.level)}</b></td>'
            f'<td style="white-space:nowrap">{escape(found.name)}</td>'
            f'<td style="text-align:left">{escape(found.sentence)}</td></tr>'
            for found in self.findings
        )
        return f"<p>{escape(self.subject)}: <b>{escape(self.level)}</b></p><table>{rows}</table>"
