"""The answer to a question about orders: verdicts, numbers, warnings and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish.lab.comparing.question import Outcomes, Question, Values
from replenish.lab.statistics import COVERAGE, Estimate, mean_with_interval
from replenish.lab.verdict import MOST_SEEDS, Verdict
from replenish.notebook import html_table


@dataclass(frozen=True, repr=False)
class Answer:
    """What a comparison of trainings found.

    Attributes:
        question: What was asked.
        values: The metric by order and seed.
        verdicts: The verdict on each of the other orders against the first.
        stopped: Why the comparison ended early; None if it did not.
        besides: Further numbers by name, order and seed; they decide nothing.
        warnings: Reasons to doubt the numbers; they are printed first.
        proofs: The order, seed and outcome of each loader in the first run of each order. They show that the orders
            were used.
        diverged: How many trainings ended without a finite metric.
        page: The path of the answer's page; None if it has none.
    """

    question: Question
    values: dict[str, dict[int, float]]
    verdicts: tuple[Verdict, ...]
    stopped: str | None
    besides: Mapping[str, Values]
    warnings: tuple[str, ...]
    proofs: tuple[tuple[str, int, str], ...] = ()
    diverged: int = 0
    page: Path | None = None

    def mean(self, order: str) -> Estimate | None:
        """Return the mean of the metric over the seeds, with its interval; None without a value."""
        found = self.values[order]
        return mean_with_interval(found.values(), self.question.rule.possible) if found else None

    def means_besides(self, what: str) -> dict[str, float]:
        """Return the means over the seeds of one of the further numbers, by order, with four digits."""
        found = {order: self.besides[what].get(order, {}) for order in self.question.orders}
        means = {order: math.fsum(by_seed.values()) / len(by_seed) for order, by_seed in found.items() if by_seed}
        return {order: float(f"{mean:.4g}") for order, mean in means.items()}

    @property
    def advice(self) -> str:
        """What to do about undecided verdicts; "" if all are decided, or if the numbers have no spread."""
        rule = self.question.rule
        undecided = [each for each in self.verdicts if each.outcome == "undecided" and each.difference.error != 0]
        if not undecided:
            return ""
        if not rule.anytime:
            margin = "" if rule.margin else ", where M is the largest difference that does not matter"
            return (
                "Do not add seeds here until it decides: that too often finds a difference that is not there. "
                f"Next, with an interval that holds at every look{margin}:"
            )
        needed = [verdict.seeds_needed for verdict in undecided]
        if None in needed:
            return (
                f"More than {MOST_SEEDS:,} seeds would be needed if mean and spread stay as they are. A margin, "
                "the largest difference that does not matter, or runs that fluctuate less would help."
            )
        most = max(each for each in needed if each is not None)
        return (
            f"About {most} seeds in all would decide, if mean and spread stay as they are. A larger test set would "
            "need fewer."
        )

    @property
    def next_command(self) -> str:
        """The command or call that the `advice` announces; "" if it announces none."""
        return self.question.ask_again if self.advice.endswith(":") else ""

    @property
    def assumption(self) -> str:
        """What the intervals assume, and how frequent an unseen failure can be; "" without an interval."""
        known = [verdict.difference.n for verdict in self.verdicts if verdict.interval is not None]
        if not known:
            return ""
        n = min(known)
        unseen = 1 - (1 - COVERAGE) ** (1 / n)  # failures this frequent spare all n runs in 1 of 20 cases
        rule, together = self.question.rule, ""
        if rule.comparisons > 1:
            together = f" Each covers {100 * (1 - rule.level):.3g} %, so that all {rule.comparisons} hold with 95 %."
        return (
            f"The intervals assume that the differences between seeds are roughly normal, without rare failures. A "
            f"failure that strikes {100 * unseen:.0f} % of an order's runs still leaves {n} runs without one in 1 of "
            f"20 comparisons: look at every seed.{together}"
        )

    def lines(self) -> list[str]:
        """Return the answer as text: verdicts, advice, numbers, and what the intervals assume."""
        found = [*self._sentences(), *filter(None, [self.advice, self.next_command and f"    {self.next_command}"])]
        width = max(map(len, self.question.orders))
        for order in self.question.orders:
            by_seed = self.values[order]
            listed = ", ".join(self.number(by_seed[seed]) for seed in sorted(by_seed))
            found.append(f"{order:{width}}  {self._mean_text(order)}  by seed: {listed or 'none'}")
        for verdict in self.verdicts:
            if verdict.difference.n > 1:
                listed = ", ".join(verdict.number(each) for each in verdict.difference.differences)
                found.append(f"{verdict.first} minus {verdict.second} by seed: {listed}")
        for what in self.besides:
            listed = ", ".join(f"{order} {digits(mean)}" for order, mean in self.means_besides(what).items())
            found.append(f"{what}: {listed}")
        found += [f"Loader with {order}, seed {seed}: {outcome}" for order, seed, outcome in self.proofs]
        return [*found, *filter(None, [self.assumption]), *([f"Page: {self.page}"] if self.page else [])]

    def number(self, value: float) -> str:
        """Return a value of the metric as text: two decimals for points, else six digits."""
        return f"{value:.2f}" if self.question.rule.unit == "points" else digits(value)

    def _mean_text(self, order: str) -> str:
        mean = self.mean(order)
        if mean is None:
            return "no run"
        if mean.interval is None:
            return f"{self.number(mean.value)} (one run)"
        ends = f"{self.number(mean.interval.low)} to {self.number(mean.interval.high)}"
        return f"mean {self.number(mean.value)} (95 % interval {ends})"

    def _sentences(self) -> list[str]:
        """Return the verdicts as sentences, and why the comparison ended early."""
        stopped = [f"Stopped: {self.stopped}."] if self.stopped else []
        return [*(verdict.sentence for verdict in self.verdicts), *stopped]

    def __repr__(self) -> str:
        return "\n".join([*(f"Warning: {warning}." for warning in self.warnings), *self.lines()])

    def _repr_html_(self) -> str:
        seeds = sorted({seed for by_seed in self.values.values() for seed in by_seed})
        rows = [
            (
                order,
                self._mean_text(order),
                *(self.number(self.values[order][seed]) if seed in self.values[order] else "" for seed in seeds),
            )
            for order in self.question.orders
        ]
        heads = ("order", "mean", *(f"seed {seed}" for seed in seeds))
        warnings = [f"Warning: {warning}." for warning in self.warnings]
        sentences = [*warnings, *self._sentences(), *filter(None, [self.advice, self.next_command, self.assumption])]
        return html_table(self.question.metric, rows, heads, sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        rule = self.question.rule
        return {
            "orders": list(self.question.orders),
            "metric": self.question.metric,
            "field": self.question.field,
            "higher_is_better": rule.higher_is_better,
            "margin": rule.margin,
            "until_decided": rule.anytime,
            "rule": rule.to_dict(),
            "warnings": list(self.warnings),
            "stopped": self.stopped,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "advice": self.advice,
            "next": self.next_command,
            "assumption": self.assumption,
            "values": _by_order(self.values),
            "loaders": [list(proof) for proof in self.proofs],
            "besides": {what: _by_order(values) for what, values in self.besides.items()},
            "diverged": self.diverged,
            "page": None if self.page is None else str(self.page),
        }


def make_answer(
    outcomes: Outcomes,
    *,
    besides: Mapping[str, Values] | None = None,
    warnings: Sequence[str] = (),
    proofs: Sequence[tuple[str, int, str]] = (),
    page: Path | None = None,
) -> Answer:
    """Return the answer from the outcomes of a comparison's trainings."""
    question, values = outcomes.question, outcomes.values
    verdicts = question.verdicts(values)
    every_warning = [*question.warnings(), *outcomes.warnings(), *warnings]
    if equal := [order for order in values if len(values[order]) > 1 == len(set(values[order].values()))]:
        every_warning.append(
            f"all seeds gave the same value with {' and with '.join(equal)}: the training may not use its seed "
            f"and its order, or the metric may be saturated or too coarse"
        )
    every_warning += [verdict.warning for verdict in verdicts if verdict.warning]
    return Answer(
        question=question,
        values={order: dict(found) for order, found in values.items()},
        verdicts=verdicts,
        stopped=outcomes.stopped,
        besides=besides or {},
        warnings=tuple(dict.fromkeys(every_warning)),
        proofs=tuple(proofs),
        diverged=len(outcomes.diverged),
        page=page,
    )


def _by_order(values: Values) -> dict[str, dict[str, float]]:
    return {order: {str(seed): value for seed, value in found.items()} for order, found in values.items()}


def digits(value: float) -> str:
    """Return a value with six digits and a typographic minus sign."""
    return f"{value:.6g}".replace("-", "−")  # noqa: RUF001
