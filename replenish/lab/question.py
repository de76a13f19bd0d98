"""A question about orders: what is compared, when it is decided, and the answer with its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from replenish import checks
from replenish.lab.statistics import mean_with_interval
from replenish.lab.verdict import FEWEST_SEEDS, Verdict, check_margin, decide

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
    """

    orders: tuple[str, ...]
    seeds: tuple[int, ...]
    higher_is_better: bool = False
    margin: float | None = None
    until_decided: bool = False
    possible: tuple[float, float] | None = None

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
            )
            for order in others
        )

    def is_decided(self, values: Values) -> bool:
        """Tell whether no further seed is wanted."""
        return self.until_decided and all(verdict.outcome != "undecided" for verdict in self.verdicts(values))

    def answer(self, values: Values, stopped: str | None = None) -> Answer:
        """Return the verdicts with their numbers; `stopped` says why there are fewer seeds than asked for."""
        return Answer(self, {order: dict(values[order]) for order in self.orders}, self.verdicts(values), stopped)


@dataclass(frozen=True)
class Answer:
    """What a comparison of trainings found.

    Attributes:
        question: What was asked.
        values: The metric by order and seed.
        verdicts: Each of the other orders against the first.
        stopped: Why there are fewer seeds than asked for, if there are.
    """

    question: Question
    values: dict[str, dict[int, float]]
    verdicts: tuple[Verdict, ...]
    stopped: str | None = None

    def lines(self) -> list[str]:
        """Return the answer for people: verdicts in words, with what makes them doubtful, then the numbers."""
        found = [verdict.sentence for verdict in self.verdicts]
        if self.stopped:
            found.append(f"Stopped: {self.stopped}.")
        width = max(map(len, self.question.orders))
        for order in self.question.orders:
            by_seed = self.values[order]
            listed = ", ".join(f"{by_seed[seed]:.6g}" for seed in sorted(by_seed))
            found.append(f"{order:{width}}  {self._mean(by_seed.values())}  by seed: {listed or 'none'}")
        return found

    def _mean(self, values: Iterable[float]) -> str:
        numbers = list(values)
        if not numbers:
            return "no run"
        mean = mean_with_interval(numbers)
        if mean.interval is None:
            return f"{mean.value:.6g} (one run)"
        low, high = mean.interval.low, mean.interval.high
        if self.question.possible is not None:
            low, high = max(low, self.question.possible[0]), min(high, self.question.possible[1])
        return f"mean {mean.value:.6g} (95 % interval {low:.6g} to {high:.6g})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "orders": list(self.question.orders),
            "higher_is_better": self.question.higher_is_better,
            "margin": self.question.margin,
            "until_decided": self.question.until_decided,
            "stopped": self.stopped,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "values": {
                order: {str(seed): value for seed, value in found.items()} for order, found in self.values.items()
            },
        }


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
    if until_decided:
        return tuple(range(checks.integer("max_seeds", max_seeds, minimum=1)))
    if isinstance(seeds, int):
        return tuple(range(checks.integer("seeds", seeds, minimum=1)))
    return tuple(checks.seed(seed) for seed in seeds)


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
