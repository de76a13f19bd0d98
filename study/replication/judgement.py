"""The rules of docs/study.md applied to the records: an effect, a verdict and p-values for every comparison.

Equivalence is two one-sided tests at 5 %. Holm's correction covers all secondary p-values, also those of equivalence.
The plan had stated it for differences only; docs/study.md lists this among the deviations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from replenish.lab.statistics import Difference
from replenish.lab.verdict import SIGNIFICANT, Rule, Verdict, decide
from replenish.measure.shuffle.effects import holm
from study.replication.evidence import Evidence, Reading
from study.replication.plan import COMPARISONS, MARGIN, PRIMARY, SECONDARY, Comparison

#: Two one-sided tests at 5 % succeed if the interval of this coverage lies within the margin.
EQUIVALENCE_COVERAGE = 0.9
RULE = Rule(margin=MARGIN, equivalence_coverage=EQUIVALENCE_COVERAGE, unit="points")
Sign = Literal["better", "worse", ""]


@dataclass(frozen=True)
class Judged:
    """A comparison and its result.

    `effect` covers the pairs that have ended; it is None for fewer than two. `not_learnt` lists the paths of runs with
    reshuffling that did not memorise their images. Diverged runs count with the error of guessing. The p-values are
    after Holm's correction; they are None for the primary comparison, and until the last pair has ended.
    """

    comparison: Comparison
    pairs: int
    effect: Difference | None
    not_learnt: tuple[str, ...]
    diverged: int
    adjusted_p: float | None = None
    adjusted_equivalence_p: float | None = None

    @property
    def complete(self) -> bool:
        """Whether every stated pair has ended. Until then nothing is judged."""
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
    def equivalence_p(self) -> float | None:
        """The larger p-value of the two one-sided tests against the margin; None where there is no spread."""
        if self.effect is None or self.effect.mean is None or not self.effect.error:
            return None
        return self.effect.p_above(MARGIN - abs(self.effect.mean))

    @property
    def sign(self) -> Sign:
        """Better (a lower error) or worse if the difference is significant after Holm; otherwise an empty string."""
        corrected = self.adjusted_p is None or self.adjusted_p < SIGNIFICANT
        return self.decided.sign if self.decided is not None and corrected else ""

    @property
    def equivalent(self) -> bool:
        """Whether the difference lies within the margin after Holm, with either sign."""
        corrected = self.adjusted_equivalence_p is None or self.adjusted_equivalence_p < SIGNIFICANT
        return self.decided is not None and self.decided.outcome == "equivalent" and corrected

    @property
    def uncorrected(self) -> str:
        """The verdict of this comparison by itself, before Holm's correction, or why there is none."""
        return self._missing or (self.decided.outcome if self.decided is not None else "undecided")

    @property
    def verdict(self) -> str:
        """The verdict after Holm's correction, or why there is none."""
        return self._missing or ("equivalent" if self.equivalent else self.sign or "undecided")

    @property
    def _missing(self) -> str:
        if not self.complete:
            return f"not run yet ({self.pairs} of {self.comparison.seeds})"
        return "" if self.testable else "not testable here"


@dataclass(frozen=True)
class Judgement:
    """All comparisons, judged by one reading of the error."""

    reading: Reading
    every: tuple[Judged, ...]

    def __getitem__(self, name: str) -> Judged:
        return {judged.comparison.name: judged for judged in self.every}[name]

    @property
    def primary(self) -> Judged:
        """The primary comparison."""
        return self[PRIMARY.name]


def judge_study(evidence: Evidence, reading: Reading = "test_error") -> Judgement:
    """Judge all comparisons, with Holm's correction over all secondary ones.

    A secondary comparison that is not judged yet counts with p = 1, so the correction always covers the whole plan.

    Raises:
        ValueError: Runs of one comparison were not executed alike.
    """
    judged = {comparison.name: judge(comparison, evidence, reading) for comparison in COMPARISONS}
    secondary = [judged[comparison.name] for comparison in SECONDARY]
    adjusted = holm(
        [
            *(_p_value(each, each.effect.p_value if each.effect else None) for each in secondary),
            *(_p_value(each, each.equivalence_p) for each in secondary),
        ]
    )
    for each, p_value, equivalence_p in zip(
        secondary, adjusted[: len(secondary)], adjusted[len(secondary) :], strict=True
    ):
        if each.judged:
            judged[each.comparison.name] = replace(each, adjusted_p=p_value, adjusted_equivalence_p=equivalence_p)
    return Judgement(reading, tuple(judged.values()))


def judge(comparison: Comparison, evidence: Evidence, reading: Reading) -> Judged:
    """Return the result of one comparison."""
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


def difference_of_differences(first: Difference, second: Difference) -> Difference:
    """Return the mean of the first minus the mean of the second, by Welch's method.

    Example:
        >>> from replenish.lab.statistics import paired_difference
        >>> none = dict.fromkeys(range(3), 0.0)
        >>> one, two = ({0: a, 1: b, 2: c} for a, b, c in ((1.0, 2.0, 3.0), (0.0, 0.0, 3.0)))
        >>> found = difference_of_differences(paired_difference(one, none), paired_difference(two, none))
        >>> found.mean, round(found.error, 4), round(found.freedom, 4)
        (1.0, 1.1547, 3.2)
    """
    n = min(first.n, second.n)
    mean = None if first.mean is None or second.mean is None else first.mean - second.mean
    if first.error is None or second.error is None:
        return Difference(mean, n, None, 0)
    parts = [(each.error**2, each.freedom) for each in (first, second) if each.error is not None]
    total = math.fsum(part for part, _ in parts)
    spread = math.fsum(part**2 / freedom for part, freedom in parts)
    freedom = total**2 / spread if spread else first.freedom + second.freedom
    return Difference(mean, n, math.sqrt(total), freedom)


def _p_value(judged: Judged, p_value: float | None) -> float:
    return 1.0 if p_value is None or not judged.judged else p_value
