"""A question about orders, and the outcomes of the trainings that answer it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic

from replenish import checks
from replenish.lab.statistics import ANY, paired_difference
from replenish.lab.verdict import FEWEST_SEEDS, Rule, Verdict, decide

#: The metric by order and seed.
Values = Mapping[str, Mapping[int, float]]
#: The default number of seeds, and the default limit with `until_decided`.
SEEDS, MAX_SEEDS = 5, 40
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Question:
    """Which of several orders is better, and the rule that decides it.

    Args:
        orders: Names of orders; each of the others is compared with the first.
        seeds: A number of seeds, which are then 0, 1, 2, ... (5 by default), or the seeds themselves.
        margin: The largest difference that does not matter, in the metric's unit.
        until_decided: Whether to look after every seed and stop once it is decided. Leave out `seeds` then.
        max_seeds: The most seeds to run with `until_decided`; 40 by default.
        higher_is_better: Whether larger values are better, as for accuracy.
        possible: The least and the greatest value that the metric can have.
        metric: The metric's name, as it is displayed.
        unit: The unit of differences, such as points.
        field: The field of a run's result that holds the metric; "" if the metric is read elsewhere.
        ask_again: The command or call to recommend after an undecided answer; it looks after every seed.
    """

    def __init__(
        self,
        orders: Sequence[str],
        seeds: int | Sequence[int] | None = None,
        *,
        margin: float | None = None,
        until_decided: bool = False,
        max_seeds: int | None = None,
        higher_is_better: bool = False,
        possible: tuple[float, float] = ANY,
        metric: str = "metric",
        unit: str = "",
        field: str = "",
        ask_again: str = "",
    ) -> None:
        self.orders = (orders,) if isinstance(orders, str) else tuple(orders)
        if len(set(self.orders)) != len(self.orders) or len(self.orders) < 2:
            raise ValueError(
                f"orders should be two or more different orders, but got {', '.join(self.orders) or 'none'}"
            )
        if until_decided and seeds is not None:
            raise ValueError(f"seeds should be left out with until_decided; use max_seeds for a limit, but got {seeds}")
        if not until_decided and max_seeds is not None:
            raise ValueError(f"max_seeds should be left out without until_decided; use seeds, but got {max_seeds}")
        #: The seeds to run; with `until_decided` not all of them may be needed.
        self.seeds = _first_seeds(max_seeds) if until_decided else _seeds(SEEDS if seeds is None else seeds)
        comparisons = len(self.orders) - 1
        self.rule = Rule(margin, higher_is_better, until_decided, comparisons, possible, unit=unit)
        self.metric, self.field = metric, field
        self.ask_again = ask_again or f"until_decided=True, margin={'M' if margin is None else margin}"

    def warnings(self) -> list[str]:
        """Return a warning if the metric's name contradicts its direction."""
        better, flag, usual, odd = "smaller", "with", _SMALLER, _LARGER
        if self.rule.higher_is_better:
            better, flag, usual, odd = "larger", "without", _LARGER, _SMALLER
        if usual.search(self.metric) or not odd.search(self.metric):
            return []
        return [f"a {better} {self.metric} was taken as better; if that is wrong, ask again {flag} higher_is_better"]

    def verdicts(self, values: Values) -> tuple[Verdict, ...]:
        """Return the verdicts on the values so far: each of the other orders against the first."""
        baseline, *others = self.orders
        return tuple(
            decide(paired_difference(values[order], values[baseline]), self.rule, (order, baseline)) for order in others
        )


#: Names of metrics for which larger values are usually better, and for which smaller ones are.
_LARGER = re.compile(r"(?<![a-z])(acc|accuracy|auc|auroc|f1|bleu|rouge|map|iou|reward|recall)(?![a-z])", re.IGNORECASE)
_SMALLER = re.compile(r"(?<![a-z])(loss|error|err|perplexity|ppl|mse|mae|rmse|nll)(?![a-z])", re.IGNORECASE)


def _first_seeds(count: int | None) -> tuple[int, ...]:
    """Return the seeds that `until_decided` may run."""
    count = MAX_SEEDS if count is None else checks.integer("max_seeds", count, minimum=1)
    if count < FEWEST_SEEDS:
        raise ValueError(f"max_seeds should be at least {FEWEST_SEEDS} to decide anything, but got {count}")
    return tuple(range(count))


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the first seeds for a number of seeds, else the given seeds."""
    if not isinstance(seeds, Iterable):
        return tuple(range(checks.integer("seeds", seeds, minimum=1)))
    found = tuple(checks.seed(seed) for seed in seeds)
    if not found or len(set(found)) != len(found):
        raise ValueError(f"seeds should be one or more different seeds, but got {list(found)}")
    return found


def checked_metric(value: object, name: str) -> float:
    """Return a metric as a float, which is infinite or NaN if the training diverged; raise if it is not a number."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} should be a number, but got {value!r:.60}") from None


class Outcomes:
    """The outcome of each training of a comparison: a value, diverged, or failed.

    After a failure the others continue, with two exceptions: no training has finished yet, or the order has at least
    two more failures than finished trainings. Then the seed is unlikely to be the cause.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.values: dict[str, dict[int, float]] = {order: {} for order in question.orders}
        self.diverged: list[tuple[str, int]] = []
        self.failed: dict[tuple[str, int], str] = {}
        #: Why the comparison ended early, such as a spent budget; else None.
        self.stopped: str | None = None

    def add(self, order: str, seed: int, value: float | None) -> None:
        """Record a training's value; None or a value that is not finite means that it diverged."""
        low, high = self.question.rule.possible
        if value is None or not math.isfinite(value):
            self.diverged.append((order, seed))
        elif low <= value <= high:
            self.values[order][seed] = value
        else:  # intervals are cut at the ends of this range
            raise ValueError(
                f"possible should include every value of the metric, but got {low:g} to {high:g} and the value "
                f"{value:g} of {order} with seed {seed}"
            )

    def fail(self, order: str, seed: int, message: str) -> bool:
        """Record a failure, and return whether to run the others."""
        self.failed[order, seed] = message
        finished = len(self.values[order]) + sum(each == order for each, _ in self.diverged)
        failures = sum(each == order for each, _ in self.failed)
        nothing = not any(self.values.values()) and not self.diverged
        return not nothing and failures < finished + 2

    def pairs(self) -> set[int]:
        """Return the seeds for which all orders have a value."""
        return set.intersection(*(set(by_seed) for by_seed in self.values.values()))

    def warnings(self) -> list[str]:
        """Return sentences about the trainings without a value."""
        found = []
        if self.diverged:
            listed = []
            for order in dict.fromkeys(order for order, _ in self.diverged):
                seeds = sorted(seed for each, seed in self.diverged if each == order)
                listed.append(f"{order} with seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}")
            many = "trainings diverged and are" if len(self.diverged) > 1 else "training diverged and is"
            found.append(
                f"{len(self.diverged)} {many} not in the numbers: {', '.join(listed)}; if one order diverges more "
                f"often, that is a difference which no interval shows"
            )
        return found + [
            f"the training of {order} with seed {seed} failed and is not in the numbers: {message}"
            for (order, seed), message in self.failed.items()
        ]

    def run_until_decided(
        self, run: Callable[[Sequence[int]], None], *, parallel: int = 1, budget: float | None = None
    ) -> None:
        """Run seeds until the question is decided, the budget is spent or no seed is left.

        `run` trains with all orders for the seeds that it gets, and adds their outcomes here. If the rule looks after
        every seed, or if there is a budget, the seeds come in rounds of just enough to keep `parallel` trainings busy.
        A round starts only if the budget, in seconds, has time for one as long as the longest before.

        Raises:
            ValueError: The first round took more than the budget, or no training ended with a value.
        """
        question, begun, longest = self.question, monotonic(), 0.0
        in_rounds = question.rule.anytime or budget is not None
        at_once = -(-parallel // len(question.orders)) if in_rounds else len(question.seeds)
        for first in range(0, len(question.seeds), at_once):
            before = monotonic()
            if budget is not None and first and before - begun + longest > budget:
                self.stopped = f"the budget of {budget:g} s allows for no more than {first} seeds"
                break
            run(question.seeds[first : first + at_once])
            longest = max(longest, monotonic() - before)
            if budget is not None and not first and longest > budget:
                raise ValueError(
                    f"budget should allow for one run of each order, but these took {longest:.3g} s and it is "
                    f"{budget:g} s"
                )
            if question.rule.anytime and all(each.outcome != "undecided" for each in question.verdicts(self.values)):
                break
        if not any(self.values.values()):
            ended = "; ".join(self.warnings()) or "none has ended"
            raise ValueError(f"no training ended with a number, so that there is nothing to compare: {ended}")


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
