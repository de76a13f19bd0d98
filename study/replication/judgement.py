"""The rules of docs/study.md, applied to the records: an effect, a verdict and p-values for every comparison.

The study stated equivalence by a 90 % interval, and it reports the sign of an equivalent difference too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from replenish.lab.statistics import Difference, difference_of_differences, holm
from replenish.lab.verdict import Rule, Verdict, decide
from study.replication.evidence import Evidence, Reading
from study.replication.plan import COMPARISONS, MARGIN, PRIMARY, SECONDARY, Comparison

#: Two one-sided tests at 5 % are the interval of this coverage within the margin.
EQUIVALENCE_COVERAGE = 0.9
RULE = Rule(margin=MARGIN, equivalence_coverage=EQUIVALENCE_COVERAGE, unit="points")
Sign = Literal["better", "worse", ""]


@dataclass(frozen=True)
class Judged:
    """A comparison and what the records say of it.

    The effect is over the pairs that have ended, None for fewer than two. Runs of reshuffling that did not learn their
    images by heart are there by path; those that diverged count with the error of guessing. The p-value is adjusted by
    Holm's method; None for the primary comparison, and before the last pair.
    """

    comparison: Comparison
    pairs: int
    effect: Difference | None
    not_learnt: tuple[str, ...]
    diverged: int
    adjusted_p: float | None = None

    @property
    def complete(self) -> bool:
        """Whether every stated pair has ended; before that nothing is judged."""
        return self.pairs == self.comparison.seeds

    @property
    def testable(self) -> bool:
        """Whether the part tests its claim: its reshuffling arms have learnt."""
        return not self.not_learnt

    @property
    def judged(self) -> bool:
        """Whether there is a verdict."""
        return self.complete and self.testable

    @cached_property
    def decided(self) -> Verdict | None:
        """The verdict by the stated rule; None if the comparison is not judged."""
        return decide(self.effect, RULE) if self.judged and self.effect else None

    @property
    def sign(self) -> Sign:
        """Better (a lower error) or worse, if the 95 % interval leaves out 0; "" if not, or not judged."""
        return "" if self.decided is None else self.decided.sign

    @property
    def equivalent(self) -> bool:
        """Whether the 90 % interval lies within the margin, whatever the sign."""
        return self.decided is not None and self.decided.outcome == "equivalent"

    @property
    def verdict(self) -> str:
        """The verdict in words, or why there is none."""
        if not self.complete:
            return f"not run yet ({self.pairs} of {self.comparison.seeds})"
        if not self.testable:
            return "not testable here"
        if self.sign and self.equivalent:
            return f"{self.sign}, and equivalent"
        return self.sign or ("equivalent" if self.equivalent else "undecided")


@dataclass(frozen=True)
class Judgement:
    """Every comparison judged, on one reading of the error."""

    reading: Reading
    every: tuple[Judged, ...]

    def __getitem__(self, name: str) -> Judged:
        return {judged.comparison.name: judged for judged in self.every}[name]

    @property
    def primary(self) -> Judged:
        """The one comparison that was stated to count."""
        return self[PRIMARY.name]


def judge_study(evidence: Evidence, reading: Reading = "test_error") -> Judgement:
    """Return the judgement of all comparisons, with Holm's correction over all secondary ones.

    A secondary comparison that is not judged yet counts in the correction with p = 1, so that their number is that of
    the plan whatever has ended.

    Raises:
        ValueError: Runs that are to be compared were not executed alike.
    """
    judged = {comparison.name: judge(comparison, evidence, reading) for comparison in COMPARISONS}
    secondary = [judged[comparison.name] for comparison in SECONDARY]
    adjusted = holm([_p_value(each) for each in secondary])
    for each, p_value in zip(secondary, adjusted, strict=True):
        if each.judged:
            judged[each.comparison.name] = replace(each, adjusted_p=p_value)
    return Judgement(reading, tuple(judged.values()))


def judge(comparison: Comparison, evidence: Evidence, reading: Reading) -> Judged:
    """Return what the records say of one comparison."""
    evidence.check_alike(comparison.arms)
    effect = evidence.difference(comparison.first, comparison.second, comparison.seeds, reading)
    if comparison.base is not None:
        effect = difference_of_differences(effect, evidence.difference(*comparison.base, comparison.seeds, reading))
    return Judged(
        comparison,
        effect.n,
        None if effect.error is None else effect,
        tuple(path for name in comparison.arms for path in evidence.arms[name].not_learnt()),
        sum(seed < comparison.seeds for name in comparison.arms for seed in evidence.arms[name].diverged),
    )


def _p_value(judged: Judged) -> float:
    p_value = judged.effect.p_value if judged.judged and judged.effect else None
    return 1.0 if p_value is None else p_value
