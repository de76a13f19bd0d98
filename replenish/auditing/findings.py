"""What an audit found: a verdict and a sentence for each question, and ways to show them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

FINE, LOOK, WRONG = VERDICTS = ("fine", "worth a look", "wrong")


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Attributes:
        question: What was asked, in a word or two.
        verdict: `"fine"`, `"worth a look"` or `"wrong"`.
        sentence: What was found, with numbers, and what to do about it.
        numbers: The numbers, by name.
    """

    question: str
    verdict: str
    sentence: str
    numbers: dict[str, int | float]


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
    def verdict(self) -> str:
        """The worst verdict of all findings."""
        return max((finding.verdict for finding in self.findings), key=VERDICTS.index, default=FINE)

    def __getitem__(self, question: str) -> Finding:
        for finding in self.findings:
            if finding.question == question:
                return finding
        asked = ", ".join(finding.question for finding in self.findings)
        raise KeyError(f"question should be one of {asked}, but got {question!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain strings, numbers, lists and dicts, ready for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        return {"subject": self.subject, "verdict": self.verdict, "findings": findings}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Audit:
        """Return the audit of which `to_dict` returned this."""
        return cls(plain["subject"], tuple(Finding(**each) for each in plain["findings"]))

    def __repr__(self) -> str:
        wide = max((len(finding.question) for finding in self.findings), default=0)
        lines = [f"{self.subject}: {self.verdict}"]
        lines += [f"  {found.verdict:12}  {found.question:{wide}}  {found.sentence}" for found in self.findings]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        colours = {FINE: "#2e7d32", LOOK: "#b26a00", WRONG: "#c62828"}
        rows = "".join(
            f'<tr><td style="color:{colours[found.verdict]};white-space:nowrap"><b>{escape(found.verdict)}</b></td>'
            f'<td style="white-space:nowrap">{escape(found.question)}</td>'
            f'<td style="text-align:left">{escape(found.sentence)}</td></tr>'
            for found in self.findings
        )
        return f"<p>{escape(self.subject)}: <b>{escape(self.verdict)}</b></p><table>{rows}</table>"
