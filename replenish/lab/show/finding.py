"""Findings: paired differences, and what they allow to be said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replenish.lab.comparing.statistics import PairedDifference, signed
from replenish.lab.show.axis import round_reach


@dataclass(frozen=True)
class Finding:
    """A paired difference, what it allows to be said, and what others say about the same."""

    name: str
    first: str
    second: str
    sentence: str  # what the data allow to be said
    # "settled" (by a rule stated beforehand), "trial" (of such a rule), "difference", "equivalent", "open" (the
    # interval includes no difference, or Holm's method does) or "unknown".
    state: str
    difference: PairedDifference  # first minus second, in `unit`; above 0 it speaks for the first if higher is better
    adjusted_p: float | None = None  # its p-value after Holm's method
    paper: float | None = None  # the paper's difference, where it prints both errors
    paper_sentence: str = ""
    order: str = "srs"  # the order of the first, for its colour
    unit: str = "points"
    higher_is_better: bool = False

    def number(self, value: float | None) -> str:
        """Return a difference as it is read: points with two decimals, in other units three digits."""
        if value is None:
            return "nothing"
        return signed(value) if self.unit == "points" else f"{value:+.3g}".replace("-", "\u2212")

    @property
    def said(self) -> str:
        """What is said of it, by the data and by the paper."""
        return f"{self.sentence} {self.paper_sentence}".strip()


def common_reach(findings: Iterable[Finding]) -> float:
    """Return how far an axis goes to either side of zero that all findings can be drawn on."""
    numbers: list[float | None] = []
    for finding in findings:
        found = finding.difference
        numbers += [found.mean, finding.paper]
        numbers += [] if found.interval is None else [found.interval.low, found.interval.high]
    return round_reach(number for number in numbers if number is not None)
