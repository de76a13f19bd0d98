"""A question about orders: which are compared, over which seeds, by which rule, and when it is decided."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from replenish import checks
from replenish.lab.statistics import ANY, paired_difference
from replenish.lab.verdict import FEWEST_SEEDS, Rule, Verdict, decide

#: The metric by order and seed.
Values = Mapping[str, Mapping[int, float]]
#: How to ask again from Python.
ASK_AGAIN = "the same call with until_decided=True and margin=M, the largest difference that does not matter"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Question:
    """Which order is better, and when that is decided.

    Attributes:
        orders: Names of orders; each of the others is compared with the first.
        seeds: The seeds; where the rule allows for a look after every seed, the most that are run.
        rule: How the differences are judged.
        metric: The metric's name, for people.
        field: The field of a run's result that holds the metric; "" where it is read elsewhere.
        ask_again: How to ask again and look after every seed, for an undecided answer: a command or a call.
    """

    orders: tuple[str, ...]
    seeds: tuple[int, ...]
    rule: Rule = field(default_factory=Rule)
    metric: str = "metric"
    field: str = ""
    ask_again: str = ""

    def __post_init__(self) -> None:
        if len(set(self.orders)) != len(self.orders) or len(self.orders) < 2:
            raise ValueError(
                f"orders should be two or more different orders, but got {', '.join(self.orders) or 'none'}"
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds should be one or more different seeds, but got {list(self.seeds)}")
        if self.rule.anytime and len(self.seeds) < FEWEST_SEEDS:
            raise ValueError(
                f"max_seeds should be at least {FEWEST_SEEDS} to decide anything, but got {len(self.seeds)}"
            )

    def verdicts(self, values: Values) -> tuple[Verdict, ...]:
        """Return what the values so far decide, each of the other orders against the first."""
        baseline, *others = self.orders
        return tuple(
            decide(paired_difference(values[order], values[baseline]), self.rule, (order, baseline)) for order in others
        )

    def is_decided(self, values: Values) -> bool:
        """Return whether no further seed is needed."""
        return self.rule.anytime and all(verdict.outcome != "undecided" for verdict in self.verdicts(values))

    def check_possible(self, values: Values) -> None:
        """Refuse a value outside the range that was stated as possible: intervals are cut there."""
        low, high = self.rule.possible
        for order, by_seed in values.items():
            for seed, value in by_seed.items():
                if not low <= value <= high:
                    raise ValueError(
                        f"possible should include every value of the metric, but got {low:g} to {high:g} and the value "
                        f"{value:g} of {order} with seed {seed}"
                    )


def ask(
    orders: str | Sequence[str],
    seeds: int | Sequence[int] = 5,
    *,
    margin: float | None = None,
    until_decided: bool = False,
    max_seeds: int = 40,
    higher_is_better: bool = False,
    possible: tuple[float, float] = ANY,
    metric: str = "metric",
    unit: str = "",
    field: str = "",
    ask_again: str = "",
) -> Question:
    """Return a question; the arguments are those of `compare`, and of `Question` and `Rule`."""
    orders = (orders,) if isinstance(orders, str) else tuple(orders)
    chosen = _seeds(seeds, until_decided, max_seeds)
    comparisons = max(len(orders) - 1, 1)
    rule = Rule(margin, higher_is_better, until_decided, comparisons, possible, unit=unit)
    return Question(orders, chosen, rule, metric, field, ask_again)


def _seeds(seeds: int | Sequence[int], until_decided: bool, max_seeds: int) -> tuple[int, ...]:
    """Return the seeds: the first so many, or those given; with `until_decided`, the first `max_seeds`."""
    if until_decided and not isinstance(seeds, int):
        raise ValueError(f"seeds should be left out with until_decided, which takes the first ones, but got {seeds}")
    if until_decided:
        return tuple(range(checks.integer("max_seeds", max_seeds, minimum=1)))
    if isinstance(seeds, int):
        return tuple(range(checks.integer("seeds", seeds, minimum=1)))
    return tuple(checks.seed(seed) for seed in seeds)


class DivergedError(ValueError):
    """A training ended with a metric that is not a finite number."""


def checked_metric(value: object, name: str) -> float:
    """Return a metric as a float.

    Raises:
        DivergedError: It is infinite or NaN.
        ValueError: It is not a number.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} should be a number, but got {value!r:.60}") from None
    if not math.isfinite(number):
        raise DivergedError(f"{name} should be a finite number, but got {number}: that training diverged")
    return number


class Outcomes:
    """How the trainings of a comparison ended: a value each, or diverged, or failed.

    A training that fails does not keep the others from their end, unless nothing has finished yet, or its order has
    failed twice more often than it finished: then the fault is not in one seed.
    """

    def __init__(self, question: Question) -> None:
        self.values: dict[str, dict[int, float]] = {order: {} for order in question.orders}
        self.diverged: list[tuple[str, int]] = []
        self.failed: dict[tuple[str, int], str] = {}

    def add(self, order: str, seed: int, value: float | None) -> None:
        """Note how a training ended; None if it diverged."""
        if value is None:
            self.diverged.append((order, seed))
        else:
            self.values[order][seed] = value

    def fail(self, order: str, seed: int, message: str) -> bool:
        """Note a failure, and return whether the others should go on."""
        self.failed[order, seed] = message
        finished = len(self.values[order]) + sum(each == order for each, _ in self.diverged)
        failures = sum(each == order for each, _ in self.failed)
        nothing = not any(self.values.values()) and not self.diverged
        return not nothing and failures < finished + 2

    def pairs(self) -> set[int]:
        """Return the seeds that all orders have a value for."""
        return set.intersection(*(set(by_seed) for by_seed in self.values.values()))

    def refuse_nothing(self) -> None:
        """Raise if no training ended with a value: there is nothing to compare."""
        if not any(self.values.values()):
            ended = "; ".join(self.warnings()) or "none has ended"
            raise ValueError(f"no training ended with a number, so that there is nothing to compare: {ended}")

    def warnings(self) -> list[str]:
        """Return a sentence on the trainings that have no value."""
        found = []
        if self.diverged:
            runs = _listed(self.diverged)
            many = "trainings diverged and are" if len(self.diverged) > 1 else "training diverged and is"
            found.append(
                f"{len(self.diverged)} {many} not in the numbers: {runs}; if one order diverges "
                f"more often, that is a difference which no interval shows"
            )
        for (order, seed), message in self.failed.items():
            found.append(f"the training of {order} with seed {seed} failed and is not in the numbers: {message}")
        return found


def _listed(runs: Sequence[tuple[str, int]]) -> str:
    by_order: dict[str, list[int]] = {}
    for order, seed in runs:
        by_order.setdefault(order, []).append(seed)
    return ", ".join(
        f"{order} with seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, sorted(seeds)))}"
        for order, seeds in by_order.items()
    )


def run_until_decided(
    question: Question,
    values: Values,
    run: Callable[[Sequence[int]], None],
    *,
    parallel: int = 1,
    budget: float | None = None,
) -> str | None:
    """Run seeds until the question is answered, and return why there are fewer than asked for, if there are.

    `run` runs all orders of some seeds, as many together as keep all of `parallel` busy, and adds to `values`. With a
    budget, in seconds, a round is begun only if one as long as the longest before would end in time.

    Raises:
        ValueError: The first round alone took more than the budget, or a value is not among the possible ones.
    """
    in_rounds = question.rule.anytime or budget is not None
    at_once = -(-parallel // len(question.orders)) if in_rounds else len(question.seeds)
    begun, longest = monotonic(), 0.0
    for first in range(0, len(question.seeds), at_once):
        before = monotonic()
        if budget is not None and first and before - begun + longest > budget:
            return f"the budget of {budget:g} s allows for no more than {first} seeds"
        run(question.seeds[first : first + at_once])
        question.check_possible(values)
        longest = max(longest, monotonic() - before)
        if budget is not None and not first and longest > budget:
            raise ValueError(
                f"budget should allow for one run of each order, but these took {longest:.3g} s and it is {budget:g} s"
            )
        if question.is_decided(values):
            break
    return None


def parse_duration(text: str) -> float:
    """Return the seconds of "2h", "90m", "1h30m" or "45s".

    Example:
        >>> parse_duration("1h30m"), parse_duration("45s")
        (5400.0, 45.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise ValueError(f"budget should be a time such as 2h, 90m or 1h30m, but got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise ValueError(f"budget should be more than no time, but got {text!r}")
    return seconds
