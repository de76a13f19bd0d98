"""A question about orders: what is compared, when it is decided, and the answer with its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from replenish import checks
from replenish.lab.comparing.statistics import ANY, Estimate, mean_with_interval
from replenish.lab.comparing.verdict import FEWEST_SEEDS, Verdict, check_margin, decide
from replenish.notebook import html_table

#: The metric by order and seed.
Values = Mapping[str, Mapping[int, float]]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Question:
    """Which order is better, and when that is decided.

    Attributes:
        orders: Names of orders; each of the others is set against the first.
        seeds: The seeds, if their number is fixed beforehand.
        higher_is_better: Whether more of the metric is better.
        margin: What difference would not matter, in the metric's unit.
        until_decided: Whether to go on, seed by seed, until all verdicts are decided; `seeds` are then as many as there
            may be.
        possible: The least and the greatest value that the metric can have.
        metric: What the metric is, for people.
        unit: What differences of it are in, such as points.
    """

    orders: tuple[str, ...]
    seeds: tuple[int, ...]
    higher_is_better: bool = False
    margin: float | None = None
    until_decided: bool = False
    possible: tuple[float, float] = ANY
    metric: str = "metric"
    unit: str = ""

    def __post_init__(self) -> None:
        if len(set(self.orders)) != len(self.orders) or len(self.orders) < 2:
            raise ValueError(
                f"orders should be two or more different orders, but got {', '.join(self.orders) or 'none'}"
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ValueError(f"seeds should be one or more different seeds, but got {list(self.seeds)}")
        if self.until_decided and len(self.seeds) < FEWEST_SEEDS:
            raise ValueError(
                f"max_seeds should be at least {FEWEST_SEEDS} to decide anything, but got {len(self.seeds)}"
            )
        check_margin(self.margin)

    def verdicts(self, values: Values) -> tuple[Verdict, ...]:
        """Return what the values so far decide, each of the other orders against the first."""
        baseline, *others = self.orders
        return tuple(
            decide(
                values[order],
                values[baseline],
                order,
                baseline,
                higher_is_better=self.higher_is_better,
                margin=self.margin,
                anytime=self.until_decided,
                comparisons=len(others),
                possible=self.possible,
                unit=self.unit,
            )
            for order in others
        )

    def is_decided(self, values: Values) -> bool:
        """Tell whether no further seed is wanted."""
        return self.until_decided and all(verdict.outcome != "undecided" for verdict in self.verdicts(values))

    def answer(
        self,
        values: Values,
        stopped: str | None = None,
        *,
        besides: Mapping[str, Values] | None = None,
        warnings: Sequence[str] = (),
    ) -> Answer:
        """Return the verdicts with their numbers; the arguments are those of `Answer`."""
        verdicts = self.verdicts(values)
        doubts = (
            *warnings,
            *self._without_effect_of_seeds(values),
            *(verdict.warning for verdict in verdicts if verdict.warning),
        )
        kept = {order: dict(values[order]) for order in self.orders}
        return Answer(self, kept, verdicts, stopped, dict(besides or {}), tuple(dict.fromkeys(doubts)))

    def _without_effect_of_seeds(self, values: Values) -> list[str]:
        """Return a warning of orders whose runs differ in the seed alone and not in the metric."""
        equal = [order for order in self.orders if len(values[order]) > 1 == len(set(values[order].values()))]
        if not equal:
            return []
        return [
            f"all seeds gave the same value with {' and with '.join(equal)}: the training may not use its seed "
            f"and its order, or the metric be saturated or too coarse"
        ]


@dataclass(frozen=True, repr=False)
class Answer:
    """What a comparison of trainings found.

    Attributes:
        question: What was asked.
        values: The metric by order and seed.
        verdicts: Each of the other orders against the first.
        stopped: Why there are fewer seeds than asked for, if there are.
        besides: Further numbers by what they are, then by order and seed; nothing is decided by them.
        warnings: What makes the numbers doubtful, to be said before anything else.
    """

    question: Question
    values: dict[str, dict[int, float]]
    verdicts: tuple[Verdict, ...]
    stopped: str | None = None
    besides: Mapping[str, Values] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def mean(self, order: str) -> Estimate | None:
        """Return the mean of the metric over the seeds, with an interval within what is possible; None without any."""
        found = self.values[order]
        return mean_with_interval(found.values(), self.question.possible) if found else None

    def mean_besides(self, what: str, order: str) -> float | None:
        """Return the mean of one of the further numbers over the seeds; None without any."""
        found = self.besides[what].get(order, {})
        return math.fsum(found.values()) / len(found) if found else None

    def lines(self) -> list[str]:
        """Return the answer for people: verdicts in words, then the numbers."""
        found = self._sentences()
        width = max(map(len, self.question.orders))
        for order in self.question.orders:
            by_seed = self.values[order]
            listed = ", ".join(f"{by_seed[seed]:.6g}" for seed in sorted(by_seed))
            found.append(f"{order:{width}}  {_mean_words(self.mean(order))}  by seed: {listed or 'none'}")
        for what in self.besides:
            means = {order: self.mean_besides(what, order) for order in self.question.orders}
            listed = ", ".join(f"{order} {mean:.4g}" for order, mean in means.items() if mean is not None)
            found.append(f"{what}: {listed}")
        return found

    def _sentences(self) -> list[str]:
        stopped = [f"Stopped: {self.stopped}."] if self.stopped else []
        return [*(verdict.sentence for verdict in self.verdicts), *stopped]

    def _warned(self) -> list[str]:
        return [f"Warning: {warning}." for warning in self.warnings]

    def __repr__(self) -> str:
        return "\n".join([*self._warned(), *self.lines()])

    def _repr_html_(self) -> str:
        seeds = sorted({seed for by_seed in self.values.values() for seed in by_seed})
        rows = [
            (
                order,
                _mean_words(self.mean(order)),
                *(f"{self.values[order][seed]:.6g}" if seed in self.values[order] else "" for seed in seeds),
            )
            for order in self.question.orders
        ]
        heads = ("order", "mean", *(f"seed {seed}" for seed in seeds))
        return html_table(self.question.metric, rows, heads, [*self._warned(), *self._sentences()])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "orders": list(self.question.orders),
            "metric": self.question.metric,
            "higher_is_better": self.question.higher_is_better,
            "margin": self.question.margin,
            "until_decided": self.question.until_decided,
            "warnings": list(self.warnings),
            "stopped": self.stopped,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "values": _plain(self.values),
            "besides": {what: _plain(values) for what, values in self.besides.items()},
        }


def _plain(values: Values) -> dict[str, dict[str, float]]:
    return {order: {str(seed): value for seed, value in found.items()} for order, found in values.items()}


def _mean_words(mean: Estimate | None) -> str:
    if mean is None:
        return "no run"
    if mean.interval is None:
        return f"{mean.value:.6g} (one run)"
    return f"mean {mean.value:.6g} (95 % interval {mean.interval.low:.6g} to {mean.interval.high:.6g})"


def checked_metric(value: object, name: str) -> float:
    """Return a metric as a float, or raise if it is not a finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} should be a number, but got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(
            f"{name} should be a finite number, but got {number}: that training diverged, so that there is nothing to "
            f"compare; a smaller learning rate may help"
        )
    return number


def seed_list(seeds: int | Sequence[int], until_decided: bool, max_seeds: int) -> tuple[int, ...]:
    """Return the seeds: the first so many, or those given; with `until_decided`, the first `max_seeds`."""
    if until_decided and not isinstance(seeds, int):
        raise ValueError(f"seeds should be left out with until_decided, which takes the first ones, but got {seeds}")
    if until_decided:
        return tuple(range(checks.integer("max_seeds", max_seeds, minimum=1)))
    if isinstance(seeds, int):
        return tuple(range(checks.integer("seeds", seeds, minimum=1)))
    return tuple(checks.seed(seed) for seed in seeds)


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
        ValueError: The first round alone took more than the budget.
    """
    in_rounds = question.until_decided or budget is not None
    at_once = -(-parallel // len(question.orders)) if in_rounds else len(question.seeds)
    begun, longest = monotonic(), 0.0
    for first in range(0, len(question.seeds), at_once):
        before = monotonic()
        if budget is not None and first and before - begun + longest > budget:
            return f"the budget of {budget:g} s allows for no more than {first} seeds"
        run(question.seeds[first : first + at_once])
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
