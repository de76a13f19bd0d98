"""The one verdict on two orders: better, worse, equivalent within a margin, or undecided.

`decide(difference, rule)` judges every comparison of this project: those of `compare`, of `report` and of the study.
With a number of seeds fixed beforehand the verdict rests on Student's interval. Where one looks after every seed and
stops as soon as there is a verdict, it rests on an interval that is valid at all looks together
(`anytime_half_width`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal

from replenish.lab.statistics import ANY, COVERAGE, Difference, Interval, anytime_half_width, around, holm

Outcome = Literal["better", "worse", "equivalent", "undecided"]
#: A p-value below this is significant.
SIGNIFICANT = 0.05
#: With fewer seeds nothing is decided, since two differences say next to nothing about their spread.
FEWEST_SEEDS = 3
#: A difference that needs more seeds than this is too small to be worth deciding.
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Rule:
    """How differences are judged.

    Attributes:
        margin: The largest difference that does not matter, in the metric's unit. Without one nothing is equivalent.
        higher_is_better: Whether larger values are better, as for accuracy.
        anytime: Whether one looks after every seed and stops when there is a verdict.
        comparisons: How many verdicts are looked at together. The intervals are widened so that all hold with 95 %.
        possible: The least and the greatest possible value of the metric; no interval goes farther.
        equivalence_coverage: The coverage of the interval that has to lie within the margin; None for that of the
            interval that decides between better and worse. 0.9 makes it two one-sided tests at 5 %.
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
            object.__setattr__(self, "margin", checked_margin(self.margin))
        low, high = self.possible
        if not low < high:  # also if either is NaN
            raise ValueError(f"possible should be the least and the greatest value, but got {self.possible}")

    @property
    def level(self) -> float:
        """The probability with which one interval may miss."""
        return (1 - COVERAGE) / self.comparisons

    def interval(self, difference: Difference, coverage: float | None = None) -> Interval | None:
        """Return the interval that a verdict rests on; None for too few pairs, or without a spread."""
        coverage = 1 - self.level if coverage is None else coverage
        if difference.n < FEWEST_SEEDS or not difference.error:
            return None
        if not self.anytime:
            return difference.interval(coverage, self.possible)
        assert difference.mean is not None
        assert difference.deviation is not None
        half = anytime_half_width(difference.n, difference.deviation, 1 - coverage)
        return None if math.isinf(half) else around(difference.mean, half, coverage, self.possible)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the range: JSON has no infinities."""
        return {name: value for name, value in asdict(self).items() if name != "possible"}


@dataclass(frozen=True)
class Verdict:
    """What was decided about two orders.

    Attributes:
        outcome: The first against the second: better, worse, equivalent (within the margin) or undecided.
        first: The name of the first.
        second: The name of the second.
        difference: First minus second, seed by seed, in the metric's unit.
        interval: The interval of the mean difference that the outcome rests on; None if there is none yet.
        sign: Better or worse if the interval excludes 0, whatever the margin says; "" if not.
        rule: How it was decided.
        adjusted_p: The p-value after Holm's method, where several comparisons are judged together by it.
        together: How many those are.
        seeds_needed: How many seeds in all would decide if mean and spread stay as they are. None if decided, if more
            than `MOST_SEEDS`, or if the rule allows for one look only: to add seeds to that until it decides would
            claim a difference too often where there is none.
        warning: What makes the numbers doubtful, if anything.
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
    seeds_needed: int | None = None
    warning: str | None = None

    @property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        return _sentence(self)

    def number(self, value: float | None) -> str:
        """Return a difference as it is printed, in the rule's unit."""
        return signed(value, self.rule.unit)

    @property
    def numbers(self) -> str:
        """The mean difference and the ends of its interval."""
        ends = (
            "" if self.interval is None else f" [{self.number(self.interval.low)}, {self.number(self.interval.high)}]"
        )
        return f"{self.number(self.difference.mean)}{ends}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        interval = self.difference.interval()
        return {
            "outcome": self.outcome,
            "sentence": self.sentence,
            "first": self.first,
            "second": self.second,
            "difference": {
                "seeds": list(self.difference.seeds),
                "differences": list(self.difference.differences),
                "mean": self.difference.mean,
                "deviation": self.difference.deviation,
                "interval": None if interval is None else asdict(interval),
                "p_value": self.difference.p_value,
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
    together: int = 1,
) -> Verdict:
    """Return the verdict on a difference.

    - *equivalent*: the interval lies within the margin. A difference that is certain but smaller than what matters is
      equivalent too, and `sign` still says which way it goes.
    - *better* or *worse*: the interval excludes 0, and the adjusted p-value, if there is one, is below 0.05.
    - *undecided*: neither.

    Args:
        difference: First minus second, as of `paired_difference`.
        rule: How it is judged; by default a lower value is better, and there is no margin.
        names: The names of the two.
        adjusted_p: The p-value after Holm's method, if several comparisons are judged together by it.
        together: How many those are.

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
        outcome = "equivalent"
    needed = _seeds_needed(difference, rule) if outcome == "undecided" and rule.anytime else None
    warning = _warning(difference)
    return Verdict(outcome, *names, difference, interval, sign, rule, adjusted_p, together, needed, warning)


def decide_together(
    differences: Sequence[Difference], rules: Iterable[Rule], names: Iterable[tuple[str, str]]
) -> list[Verdict]:
    """Return the verdicts on differences that are looked at together, with p-values adjusted by Holm's method.

    A rule that widens its intervals for several comparisons, or for several looks, needs no adjustment besides.
    """
    judged = [decide(found, rule, both) for found, rule, both in zip(differences, rules, names, strict=True)]
    tested = [each for each in judged if each.interval is not None and each.difference.p_value is not None]
    adjusted = holm([each.difference.p_value or 0.0 for each in tested])
    by_id = {id(each): p_value for each, p_value in zip(tested, adjusted, strict=True)}
    return [
        each
        if id(each) not in by_id or each.rule.anytime or each.rule.comparisons > 1
        else decide(
            each.difference,
            each.rule,
            (each.first, each.second),
            adjusted_p=by_id[id(each)],
            together=len(tested),
        )
        for each in judged
    ]


def checked_margin(margin: object) -> float:
    """Return a margin as a float, or raise if it is not a positive number."""
    if isinstance(margin, bool) or not isinstance(margin, Real):
        raise TypeError(f"margin should be a number in the metric's unit, but got {margin!r}")
    number = float(margin)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"margin should be above 0, in the metric's unit, but got {margin!r}")
    return number


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


def _seeds_needed(difference: Difference, rule: Rule) -> int | None:
    """Return how many seeds in all would decide, if mean and spread stay as they are."""
    if difference.mean is None or not difference.deviation:
        return None
    distance = abs(difference.mean)
    for n in range(max(difference.n + 1, FEWEST_SEEDS), MOST_SEEDS + 1):
        half = anytime_half_width(n, difference.deviation, rule.level)
        if half < distance or (rule.margin is not None and distance + half < rule.margin):
            return n
    return None


def _warning(difference: Difference) -> str | None:
    if 0 < difference.n < FEWEST_SEEDS:
        pairs = "a single pair of runs decides" if difference.n == 1 else f"{difference.n} pairs of runs decide"
        return f"{pairs} nothing: take at least {FEWEST_SEEDS} seeds"
    if difference.error == 0 and difference.n:
        if difference.mean == 0:
            return "both gave the same value at every seed: the metric may be saturated or too coarse"
        return "the difference was the same at every seed: the metric may not be random at all"
    return None


def _sentence(verdict: Verdict) -> str:
    first, second, difference, rule = verdict.first, verdict.second, verdict.difference, verdict.rule
    if difference.mean is None:
        return f"Undecided between {first} and {second}: no seed has ended with both."
    unit = f" {rule.unit}" if rule.unit else ""
    size = signed(difference.mean, rule.unit)
    if size.startswith("0"):
        size = f"level on average ({size}{unit})"
    else:
        size = f"{size[1:]}{unit} {'higher' if difference.mean > 0 else 'lower'}"
    found = f"{size} ({_interval_words(verdict)})"
    if verdict.outcome == "equivalent":
        return f"{first} and {second} are equivalent within {rule.margin:g}{unit}: {first} {found}."
    if verdict.outcome != "undecided":
        return f"{first} is {verdict.outcome} than {second}: {found}."
    said = f"Undecided between {first} and {second}: {first} {found}"
    if verdict.sign and verdict.adjusted_p is not None:
        said += (
            f"; by itself {verdict.sign}, but not among the {verdict.together} comparisons made together "
            f"(p = {verdict.adjusted_p:.3f} after Holm)"
        )
    return f"{said}."


def _interval_words(verdict: Verdict) -> str:
    n = verdict.difference.n
    parts = [] if verdict.interval is None else [_between(verdict.interval, verdict)]
    if verdict.interval is not None and verdict.rule.anytime:
        parts.append("valid at every look")
    coverage = verdict.rule.equivalence_coverage
    if verdict.outcome == "equivalent" and coverage is not None:
        within = verdict.rule.interval(verdict.difference, coverage)
        assert within is not None
        parts.append(f"{_between(within, verdict)} within the margin")
    return ", ".join([*parts, f"n = {n} seed{'s' if n > 1 else ''}, paired"])


def _between(interval: Interval, verdict: Verdict) -> str:
    ends = f"{verdict.number(interval.low)} to {verdict.number(interval.high)}"
    return f"{100 * interval.coverage:.3g} % interval {ends}"
