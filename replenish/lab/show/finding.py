"""Findings: a verdict as a page shows it, beside what the paper says of the same difference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replenish.lab.show.axis import round_reach
from replenish.lab.verdict import Verdict


@dataclass(frozen=True)
class Finding:
    """A verdict, remarks on its runs, and what the paper says about the same difference."""

    name: str
    verdict: Verdict
    remark: str = ""  # a sentence about runs that are not in the numbers, or that were executed differently
    paper: float | None = None  # the paper's difference, where it prints both errors
    paper_sentence: str = ""
    order: str = "srs"  # the order of the first, for its colour

    @property
    def sentence(self) -> str:
        """The verdict and the remark."""
        return f"{self.verdict.sentence} {self.remark}".strip()

    @property
    def said(self) -> str:
        """The sentence, and the paper's."""
        return f"{self.sentence} {self.paper_sentence}".strip()


def common_reach(findings: Iterable[Finding]) -> float:
    """Return how far an axis goes to either side of zero so that it has room for all findings."""
    numbers: list[float | None] = []
    for finding in findings:
        interval = finding.verdict.interval
        numbers += [finding.verdict.difference.mean, finding.paper, finding.verdict.rule.margin]
        numbers += [] if interval is None else [interval.low, interval.high]
    return round_reach(number for number in numbers if number is not None)
