"""The verdict on two orders: better, worse, equivalent within a margin, or undecided.

`decide(difference, rule)` judges every comparison of `compare`, `report` and the study. If the number of seeds is fixed
beforehand, the verdict uses Student's interval. If you look after every seed and stop at a verdict, it uses an interval
that is valid at all looks together (`anytime_half_width`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from replenish import checks
from replenish.lab.statistics import ANY, COVERAGE, Difference, Interval, anytime_half_width
from replenish.measure.shuffle.effects import holm

Outcome = Literal["better", "worse", "equivalent", "undecided"]
#: A p-value below this is significant.
SIGNIFICANT = 0.05
#: With fewer seeds every verdict is undecided, since two differences say next to nothing about their spread.
FEWEST_SEEDS = 3
#: A difference that needs more seeds than this is too small to be worth deciding.
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Rule:
    """How `decide` judges a difference.

    Attributes:
        margin: The largest difference that does not matter, in the metric's unit. Without one nothing is equivalent.
        higher_is_better: Whether larger values are better, as for accuracy.
        anytime: Whether you look after every seed and stop at a verdict.
        comparisons: How many verdicts you read together. Wider intervals make them all hold together with 95 %.
        possible: The least and the greatest possible value of the metric; no interval goes farther.
        equivalence_coverage: The coverage of the interval that must lie within the margin. None uses the interval that
            decides between better and worse; 0.9 amounts to two one-sided tests at 5 %.
        unit: The unit of differences, such as points.
    """

    margin: float | None = None
    higher_is_better: bool = False
    anytime: bool = False
    comparisons: int = 1
    possible: tuple[float, float] = ANY
    equivalence_coverage: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if self.margin is not None:
            object.__setattr__(self, "margin", checks.real("margin", self.margin, positive=True))
        try:
            low, high = map(float, self.possible)
        except (TypeError, ValueError):
            low = high = math.nan
        if not low < high:  # also if either is NaN
            raise ValueError(f"possible should be the least and the greatest value, but got {self.possible!r}")

    @property
    def level(self) -> float:
        """The probability that one interval misses."""
        return (1 - COVERAGE) / self.comparisons

    def interval(self, difference: Difference, coverage: float | None = None) -> Interval | None:
        """Return the interval for a verdict; None for too few pairs, or if the differences have no spread."""
        coverage = 1 - self.level if coverage is None else coverage
        if difference.n < FEWEST_SEEDS or not difference.error:
            return None
        if not self.anytime:
            return difference.interval(coverage, self.possible)
        assert difference.deviation is not None
        half = anytime_half_width(difference.n, difference.deviation, 1 - coverage)
        return None if math.isinf(half) else difference.around(half, coverage, self.possible)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the range: JSON has no infinities."""
        return {name: value for name, value in asdict(self).items() if name != "possible"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on two orders, with its numbers.

    Attributes:
        outcome: The first compared with the second: better, worse, equivalent (within the margin) or undecided.
        first: The name of the first.
        second: The name of the second.
        difference: First minus second, seed by seed, in the metric's unit.
        interval: The interval of the mean difference behind the outcome; None if there is none yet.
        sign: Better or worse if the interval excludes 0, whatever the margin; "" if it does not.
        rule: The rule that decided.
        adjusted_p: The p-value after Holm's method, if it was applied to several comparisons together.
        together: How many comparisons are judged together.
    """

    outcome: Outcome
    first: str
    second: str
    difference: Difference
    interval: Interval | None
    sign: Literal["better", "worse", ""]
    rule: Rule
    adjusted_p: float | None = None
    together: int = 1

    @property
    def seeds_needed(self) -> int | None:
        """The total number of seeds that would decide, if mean and spread stay as they are.

        None if the verdict is decided, or needs more than `MOST_SEEDS`. Also None for a rule that allows only one look:
        adding seeds until it decides would too often claim a difference where there is none.
        """
        found, rule = self.difference, self.rule
        if self.outcome != "undecided" or not rule.anytime or found.mean is None or not found.deviation:
            return None
        distance = abs(found.mean)
        for n in range(max(found.n + 1, FEWEST_SEEDS), MOST_SEEDS + 1):
            half = anytime_half_width(n, found.deviation, rule.level)
            if half < distance or (rule.margin is not None and distance + half < rule.margin):
                return n
        return None

    @property
    def warning(self) -> str | None:
        """A reason to doubt the numbers; None without one."""
        n, pair = self.difference.n, f"{self.first} and {self.second}"
        if 0 < n < FEWEST_SEEDS:
            pairs = "a single pair of runs decides" if n == 1 else f"{n} pairs of runs decide"
            return f"{pairs} nothing: take at least {FEWEST_SEEDS} seeds"
        if n and self.difference.error == 0:
            if self.difference.mean == 0:
                return f"{pair} gave the same value at every seed: the metric may be saturated or too coarse"
            return f"{pair} differ by the same at every seed: the metric may not be random at all"
        return None

    @property
    def sentence(self) -> str:
        """The verdict as a sentence, with its numbers."""
        first, second, mean, rule = self.first, self.second, self.difference.mean, self.rule
        if mean is None:
            return f"Undecided between {first} and {second}: no seed has ended with both."
        unit = f" {rule.unit}" if rule.unit else ""
        sign, size = self.number(mean)[0], self.number(mean)[1:]
        distance = "level on average" if sign == "0" else f"{size}{unit} {'higher' if mean > 0 else 'lower'}"
        found = f"{distance} ({self._interval_text()})"
        if self.outcome == "equivalent":
            return f"{first} and {second} are equivalent within {rule.margin:g}{unit}: {first} {found}."
        if self.outcome != "undecided":
            return f"{first} is {self.outcome} than {second}: {found}."
        adjusted = ""
        if self.sign and self.adjusted_p is not None:
            adjusted = (
                f"; by itself {self.sign}, but not among the {self.together} comparisons made together "
                f"(p = {self.adjusted_p:.3f} after Holm)"
            )
        return f"Undecided between {first} and {second}: {first} {found}{adjusted}."

    def _interval_text(self) -> str:
        """Return the intervals behind the verdict, and the number of seeds, as text."""
        n, rule = self.difference.n, self.rule
        intervals = [(self.interval, ", valid at every look" if rule.anytime else "")]
        if self.outcome == "equivalent" and rule.equivalence_coverage is not None:
            intervals.append((rule.interval(self.difference, rule.equivalence_coverage), " within the margin"))
        parts = [
            f"{100 * found.coverage:.3g} % interval {self.number(found.low)} to {self.number(found.high)}{more}"
            for found, more in intervals
            if found is not None
        ]
        return ", ".join([*parts, f"n = {n} seed{'s' if n > 1 else ''}, paired"])

    def number(self, value: float | None) -> str:
        """Return a difference as text, in the rule's unit."""
        return signed(value, self.rule.unit)

    @property
    def numbers(self) -> str:
        """The mean difference and the ends of its interval."""
        found = self.interval
        ends = "" if found is None else f" [{self.number(found.low)}, {self.number(found.high)}]"
        return f"{self.number(self.difference.mean)}{ends}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        difference, student = self.difference, self.difference.interval()
        return {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "first": self.first,
            "second": self.second,
            "difference": {
                "seeds": list(difference.seeds),
                "differences": list(difference.differences),
                "mean": difference.mean,
                "deviation": difference.deviation,
                "interval": None if student is None else asdict(student),
                "p_value": difference.p_value,
            },
            "interval": None if self.interval is None else asdict(self.interval),
            "margin": self.rule.margin,
            "anytime": self.rule.anytime,
            "seeds_needed": self.seeds_needed,
            "warning": self.warning,
        }


def decide(
    difference: Difference,
    rule: Rule | None = None,
    names: tuple[str, str] = ("the first", "the second"),
    *,
    adjusted_p: float | None = None,
    adjusted_equivalence_p: float | None = None,
    together: int = 1,
) -> Verdict:
    """Return the verdict on a difference.

    - *equivalent*: the interval lies within the margin, and the adjusted p-value of equivalence, if given, is small
      enough. A difference within the margin is equivalent even if its sign is certain; `sign` then has it.
    - *better* or *worse*: the interval excludes 0, and the adjusted p-value, if given, is below 0.05.
    - *undecided*: neither.

    Args:
        difference: First minus second, as `paired_difference` returns it.
        rule: The rule; by default lower values are better, and there is no margin.
        names: The names of the two.
        adjusted_p: The p-value after Holm's method, if it was applied to several comparisons together.
        adjusted_equivalence_p: The p-value of equivalence after Holm's method.
        together: How many comparisons are judged together.

    Example:
        >>> from replenish.lab.statistics import paired_difference
        >>> errors = {0: 5.1, 1: 6.2, 2: 5.9, 3: 5.4}, {0: 6.0, 1: 7.3, 2: 6.9, 3: 6.2}
        >>> verdict = decide(paired_difference(*errors), names=("srs", "reshuffling"))
        >>> verdict.outcome, round(verdict.interval.high, 3)
        ('better', -0.745)
    """
    rule = rule or Rule()
    interval = rule.interval(difference)
    sign: Literal["better", "worse", ""] = ""
    if interval is not None and (interval.low > 0 or interval.high < 0):
        sign = "better" if (interval.low > 0) == rule.higher_is_better else "worse"
    outcome: Outcome = sign or "undecided"
    if adjusted_p is not None and adjusted_p >= SIGNIFICANT:
        outcome = "undecided"
    within = rule.interval(difference, rule.equivalence_coverage)
    if rule.margin is not None and within is not None and max(-within.low, within.high) < rule.margin:
        survives = adjusted_equivalence_p is None or adjusted_equivalence_p < (1 - within.coverage) / 2
        outcome = "equivalent" if survives else outcome
    return Verdict(outcome, *names, difference, interval, sign, rule, adjusted_p, together)


def decide_together(
    differences: Sequence[Difference], rules: Sequence[Rule], names: Sequence[tuple[str, str]]
) -> list[Verdict]:
    """Return the verdicts on differences that you read together, with p-values adjusted by Holm's method.

    Tests of a difference and tests of equivalence are separate families. A rule that already widens its intervals, for
    several comparisons or several looks, gets no further adjustment.
    """
    judged = [decide(*each) for each in zip(differences, rules, names, strict=True)]
    tested = [place for place, each in enumerate(judged) if each.interval is not None]
    of_difference = _adjusted({place: differences[place].p_value for place in tested})
    of_equivalence = _adjusted({place: _equivalence_p(differences[place], rules[place]) for place in tested})
    for place in tested:
        if not rules[place].anytime and rules[place].comparisons == 1:
            judged[place] = decide(
                differences[place],
                rules[place],
                names[place],
                adjusted_p=of_difference[place],
                adjusted_equivalence_p=of_equivalence.get(place),
                together=len(tested),
            )
    return judged


def _equivalence_p(difference: Difference, rule: Rule) -> float | None:
    """Return the larger p-value of the two one-sided tests against the margin; None without a margin."""
    assert difference.mean is not None
    return None if rule.margin is None else difference.p_above(rule.margin - abs(difference.mean))


def _adjusted(p_values: Mapping[int, float | None]) -> dict[int, float]:
    """Return the p-values after Holm's method, by place; a p-value of None is left out."""
    known = {place: p_value for place, p_value in p_values.items() if p_value is not None}
    return dict(zip(known, holm(known.values()), strict=True))


def signed(value: float | None, unit: str = "points") -> str:
    """Return a difference with its sign: points with two decimals, other units with three digits; a dash for None.

    Example:
        >>> signed(0.4), signed(-0.001), signed(0.01234, "")
        ('+0.40', '0.00', '+0.0123')
    """
    if value is None:
        return "–"  # noqa: RUF001
    text = f"{value:+.2f}" if unit == "points" else f"{value:+.3g}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")  # noqa: RUF001
