"""A verdict that decides: better, worse, equivalent within a margin, or undecided, from differences taken seed by seed.

With a number of seeds fixed beforehand the verdict rests on Student's interval. Where one looks after every seed and
stops when it is decided, it rests on an interval that is valid at all looks together (`anytime_half_width`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from replenish.lab.comparing.statistics import ANY, COVERAGE, Interval, PairedDifference, half_width, paired_difference

Outcome = Literal["better", "worse", "equivalent", "undecided"]
#: With fewer seeds nothing is decided, since two differences say next to nothing about their spread.
FEWEST_SEEDS = 3
#: Beyond so many a difference is too small to be decided by more seeds.
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Verdict:
    """What was decided about two orders.

    Attributes:
        outcome: Of the first against the second: better, worse, equivalent (within the margin) or undecided.
        sentence: The same in words, with the numbers, and what would help where nothing is decided.
        first: The name of the first.
        second: The name of the second.
        difference: First minus second, seed by seed, in the metric's unit.
        interval: The interval of the mean difference that the outcome rests on; None if there is none yet.
        margin: The difference that would not matter, if one was given.
        anytime: Whether the interval may be looked at after every seed.
        seeds_needed: How many seeds in all would decide if mean and spread stay as they are. None if decided, if more
            than `MOST_SEEDS`, or if the interval holds at one look alone: to add seeds to that until it decides would
            claim a difference too often where there is none.
        warning: What makes the numbers doubtful, if anything.
    """

    outcome: Outcome
    sentence: str
    first: str
    second: str
    difference: PairedDifference
    interval: Interval | None
    margin: float | None
    anytime: bool
    seeds_needed: int | None
    warning: str | None


def decide(
    first_values: Mapping[int, float],
    second_values: Mapping[int, float],
    first: str,
    second: str,
    *,
    higher_is_better: bool = False,
    margin: float | None = None,
    anytime: bool = False,
    comparisons: int = 1,
    possible: tuple[float, float] = ANY,
    unit: str = "",
) -> Verdict:
    """Return the verdict on a metric of two orders.

    - *equivalent*: the interval lies within the margin. A difference that is certain but smaller than what matters is
      equivalent too, and the interval shows it.
    - *better* or *worse*: the interval excludes 0.
    - *undecided*: neither.

    Args:
        first_values: The metric of the first by seed.
        second_values: The metric of the second by seed; only seeds that both have count.
        first: The name of the first.
        second: The name of the second.
        higher_is_better: Whether more of the metric is better, as with an accuracy.
        margin: What difference would not matter, in the metric's unit. Without one nothing is ever equivalent.
        anytime: Whether one looks after every seed, to stop when it is decided.
        comparisons: How many verdicts are looked at together: the intervals are widened so that with 95 % all hold.
        possible: The least and the greatest value that the metric can have, beyond which no interval goes.
        unit: What differences are in, such as points.

    Example:
        >>> errors = {0: 5.1, 1: 6.2, 2: 5.9, 3: 5.4}, {0: 6.0, 1: 7.3, 2: 6.9, 3: 6.2}
        >>> decide(*errors, "srs", "reshuffling").sentence
        'srs is better than reshuffling: 0.95 lower (95 % interval -1.16 to -0.745, n = 4 seeds, paired).'
    """
    check_margin(margin)
    difference = paired_difference(first_values, second_values)
    level = (1 - COVERAGE) / comparisons
    interval = _interval(difference, level, anytime, possible)
    outcome = _outcome(interval, margin, higher_is_better)
    needed = _seeds_needed(difference, level, margin) if outcome == "undecided" and anytime else None
    warning = _warning(difference)
    found = Verdict(outcome, "", first, second, difference, interval, margin, anytime, needed, warning)
    return replace(found, sentence=_sentence(found, unit))


def anytime_half_width(n: int, deviation: float, level: float = 1 - COVERAGE) -> float:
    """Return half the width of an interval of a mean difference that may be looked at after every seed.

    With probability 1 - level the intervals of *all* n from 2 on contain the mean together, if the differences are
    normal with any variance. They are the values m that a test martingale does not refute: the ratio of the likelihood
    of the t statistic when the mean is off by a normal multiple (with variance 1) of the standard deviation to
    that when it is m. Under m the ratio is a martingale that starts at 1, so that it ever reaches 1/level with
    probability at most level (Ville's inequality; Lai, "On confidence sequences", Ann. Statist. 4 (1976), began with
    such mixtures). Solved for m, with nu = n - 1 and r = n + 1:

        half-width = s sqrt(nu (c - 1) / (n (1 - c / r))),   c = (sqrt(r) / level)^(2 / n),   infinite if c >= r.

    Args:
        n: The number of differences.
        deviation: Their standard deviation s.
        level: 0.05 for 95 %.

    Example:
        >>> [round(anytime_half_width(n, 1.0), 2) for n in (3, 5, 10, 40)]
        [inf, 3.78, 1.22, 0.53]
    """
    ratio = n + 1.0
    threshold = (math.sqrt(ratio) / level) ** (2 / n)
    if n < 2 or threshold >= ratio:
        return math.inf
    return deviation * math.sqrt((n - 1) * (threshold - 1) / (n * (1 - threshold / ratio)))


def check_margin(margin: object) -> None:
    """Raise unless a margin is None or a positive number."""
    if margin is None:
        return
    if isinstance(margin, bool) or not isinstance(margin, (int, float)):
        raise TypeError(f"margin should be a number in the metric's unit, but got {margin!r}")
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin should be above 0, in the metric's unit, but got {margin!r}")


def _interval(
    difference: PairedDifference, level: float, anytime: bool, possible: tuple[float, float]
) -> Interval | None:
    if difference.mean is None or not difference.deviation or difference.n < FEWEST_SEEDS:
        return None
    half = (anytime_half_width if anytime else half_width)(difference.n, difference.deviation, level)
    if math.isinf(half):
        return None
    widest = possible[1] - possible[0]
    return Interval(max(difference.mean - half, -widest), min(difference.mean + half, widest), 1 - level)


def _outcome(interval: Interval | None, margin: float | None, higher_is_better: bool) -> Outcome:
    if interval is None:
        return "undecided"
    if margin is not None and -margin < interval.low and interval.high < margin:
        return "equivalent"
    if interval.low > 0:
        return "better" if higher_is_better else "worse"
    if interval.high < 0:
        return "worse" if higher_is_better else "better"
    return "undecided"


def _seeds_needed(difference: PairedDifference, level: float, margin: float | None) -> int | None:
    """Return how many seeds in all would decide, if mean and spread stay as they are."""
    if difference.mean is None or not difference.deviation:
        return None
    for n in range(max(difference.n + 1, FEWEST_SEEDS), MOST_SEEDS + 1):
        half = anytime_half_width(n, difference.deviation, level)
        distance = abs(difference.mean)
        if half < distance or (margin is not None and distance + half < margin):
            return n
    return None


def _warning(difference: PairedDifference) -> str | None:
    if difference.n < FEWEST_SEEDS:
        pairs = "a single pair of runs decides" if difference.n == 1 else f"{difference.n} pairs of runs decide"
        return f"{pairs} nothing: take {FEWEST_SEEDS} seeds at least"
    if difference.deviation == 0:
        if difference.mean == 0:
            return "both orders gave the same value at every seed: the metric may be saturated or too coarse"
        return "the difference was the same at every seed: is the metric a random number at all?"
    return None


def _sentence(verdict: Verdict, unit: str) -> str:
    first, second, difference, interval = verdict.first, verdict.second, verdict.difference, verdict.interval
    if difference.mean is None:
        return f"Undecided between {first} and {second}: no seed has ended with both."
    n = f"n = {difference.n} seed{'s' if difference.n > 1 else ''}, paired"
    if interval is not None:
        looks = ", valid at every look" if verdict.anytime else ""
        n = f"{100 * interval.coverage:.3g} % interval {interval.low:+.3g} to {interval.high:+.3g}{looks}, {n}"
    of_unit = f" {unit}" if unit else ""
    size = f"{abs(difference.mean):.3g}{of_unit} {'higher' if difference.mean > 0 else 'lower'}"
    if verdict.outcome == "equivalent":
        return f"{first} and {second} are equivalent within {verdict.margin:g}{of_unit}: {first} {size} ({n})."
    if verdict.outcome != "undecided":
        return f"{first} is {verdict.outcome} than {second}: {size} ({n})."
    return f"Undecided between {first} and {second}: {first} {size} ({n}). {_what_would_help(verdict)}"


def _what_would_help(verdict: Verdict) -> str:
    if verdict.warning is not None:
        return verdict.warning[0].upper() + verdict.warning[1:] + "."
    if not verdict.anytime:
        return (
            "Seeds may be added only to a comparison that looks after every seed, with an interval that holds at all "
            "looks; or state a larger number before its first run."
        )
    if verdict.seeds_needed is None:
        return f"More than {MOST_SEEDS:,} seeds would be needed; a margin, below which it does not matter, would help."
    more = verdict.seeds_needed - verdict.difference.n
    return (
        f"About {more} more seed{'s' if more > 1 else ''} would decide, if mean and spread stay as they are; runs that "
        f"fluctuate less, or a larger test set, would need fewer."
    )
