"""Findings: a verdict beside what the paper says about the same difference, as data and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from replenish.lab.show.chart import Axis, round_reach, tick_label, ticks
from replenish.lab.show.svg import number
from replenish.lab.verdict import Verdict
from replenish.palette import look_of

#: Characters of a name that fit beneath an axis, with an arrow and "better"; and of two names side by side.
LONGEST_NAME, LONGEST_BESIDE = 44, 26


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
    ends: list[float | None] = []
    for finding in findings:
        interval = finding.verdict.interval
        ends += [finding.verdict.difference.mean, finding.paper, finding.verdict.rule.margin]
        ends += [] if interval is None else [interval.low, interval.high]
    return round_reach(end for end in ends if end is not None)


def finding_svg(finding: Finding, reach: float) -> str:
    """Return a finding on an axis that reaches so far to either side: its interval, its mean, and the paper's."""
    width, bottom, middle = 400, 34, 17
    values = ticks(-reach, reach, 6)
    if _longest(values) > 5:  # as long as there is room for between two of seven
        values = ticks(-reach, reach, 4)
    edge = max(16, 4.5 * _longest(values))  # half of a word, which the first and the last tick may be written under
    x = Axis(-reach, reach, edge, width - edge)
    told = escape(_told(finding))
    parts = [f'<svg viewBox="0 0 {width} {bottom + 56}" class="chart forest" role="img" aria-label="{told}">']
    if margin := finding.verdict.rule.margin:
        ends = [x.at(min(max(each, -reach), reach)) for each in (-margin, margin)]
        wide = f'x="{number(ends[0])}" width="{number(ends[1] - ends[0])}"'
        parts.append(f'<rect class="margin" {wide} y="4" height="{bottom - 4}"/>')
    for value in values:
        at = number(x.at(value))
        kind = "zero" if value == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="4" y2="{bottom}"/>')
        text = tick_label(value).replace("-", "\u2212")
        parts.append(f'<text class="tick x" x="{at}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    parts.append(f'<g class="h{look_of(finding.order).hue}"><title>{told}</title>')
    parts.append(f'<rect class="reach" x="0" y="{middle - 12}" width="{width}" height="24"/>')
    if finding.paper is not None:
        parts.append(f'<path class="reference" d="M{number(x.at(finding.paper))} {middle - 8}l7 8l-7 8l-7 -8z"/>')
    if (interval := finding.verdict.interval) is not None:
        between = f'x1="{number(x.at(interval.low))}" x2="{number(x.at(interval.high))}"'
        parts.append(f'<line class="interval" {between} y1="{middle}" y2="{middle}"/>')
    if (mean := finding.verdict.difference.mean) is not None:
        parts.append(f'<circle class="mean" cx="{number(x.at(mean))}" cy="{middle}" r="5"/>')
    base = bottom + 34
    left_side, right_side = sides(finding.verdict)
    below = base + (16 if len(left_side) + len(right_side) > LONGEST_BESIDE else 0)
    parts.append(f'</g><text x="2" y="{base}">\u2190 {escape(left_side)} better</text>')
    parts.append(f'<text x="{width - 2}" y="{below}" text-anchor="end">{escape(right_side)} better \u2192</text>')
    return "".join(parts) + "</svg>"


def sides(verdict: Verdict) -> tuple[str, str]:
    """Return who is better on the left of zero and on the right of it, in names that fit beneath an axis."""
    first, second = (
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        for name in (verdict.first, verdict.second)
    )
    return (second, first) if verdict.rule.higher_is_better else (first, second)


def _longest(values: list[float]) -> int:
    return max(len(tick_label(value)) for value in values)


def _told(finding: Finding) -> str:
    verdict, others = finding.verdict, ""
    if finding.paper is not None:
        others = f"; reference {verdict.number(finding.paper)}"
    return f"{verdict.first} minus {verdict.second}: {verdict.numbers}{others}"
