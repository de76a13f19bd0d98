"""`compare_trainings`: which order is better in a training of your own, given as a function."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path

from replenish import checks
from replenish.lab.atomic_files import check_place
from replenish.lab.comparing.answer import Answer, make_answer
from replenish.lab.comparing.page import write_page
from replenish.lab.comparing.question import Outcomes, Question, checked_metric
from replenish.lab.statistics import ANY
from replenish.orders.building import build_order, check_fittable
from replenish.orders.protocol import Order
from replenish.orders.rebatched import FittedOrder

#: A training: called with an order and a seed, it returns its metric, or several by name.
Training = Callable[[Order, int], float | Mapping[str, float]]


def compare_trainings(
    train: Training,
    num_samples: int,
    batch_size: int,
    *,
    orders: Sequence[str] = ("reshuffling", "srs"),
    seeds: int | Sequence[int] | None = None,
    metric: str | None = None,
    higher_is_better: bool = False,
    margin: float | None = None,
    until_decided: bool = False,
    max_seeds: int | None = None,
    budget: float | None = None,
    possible: tuple[float, float] = ANY,
    page: str | os.PathLike[str] | None = None,
) -> Answer:
    """Train with several orders over several seeds, and say which is better.

    Every batch is full: where `batch_size` does not divide `num_samples`, the short batch that some orders would end an
    epoch on is dropped, so that all see equally many samples. All orders of a seed are trained before the next seed.
    Seed everything except the order of the data with `seed`. Then the trainings of one seed differ in the order only,
    and their differences are taken seed by seed.

    A training that raises an error or returns NaN does not lose the others: the answer leaves it out and names its
    order and seed. An interrupt (Ctrl-C) leaves what has ended on the page, if there is one.

    Args:
        train: Called as `train(order, seed)`, it trains with the order's batches and returns a number, or several by
            name. Give the order to `OrderBatchSampler`, or iterate `order.batches()`.
        num_samples: How many samples the training data have.
        batch_size: How many make a batch, over all processes.
        orders: Names of orders; each of the others is compared with the first.
        seeds: How many (the first so many; 5 by default), or which.
        metric: Which number decides, if `train` returns several.
        higher_is_better: Whether more of it is better, as with an accuracy.
        margin: What difference would not matter, in the metric's unit.
        until_decided: Whether to look after every seed and stop when it is decided; `seeds` is then left out.
        max_seeds: With `until_decided`, how many seeds at most; 40 by default.
        budget: Seconds in all; no seed is begun that would not end in time, going by those before.
        possible: The least and the greatest value that the metric can have.
        page: Where to write the answer as a page, with every seed and the intervals; ends in `.html`.

    Returns:
        The answer, with its verdicts, the values by order and seed, and lines to print.

    Example:
        >>> def train(order, seed):
        ...     return 5.0 + 0.1 * seed if "Reshuffling" in repr(order) else 4.0 + 0.11 * seed
        >>> compare_trainings(train, 1000, 50, seeds=4).verdicts[0].outcome
        'better'
    """
    question = Question(
        orders,
        seeds,
        margin=margin,
        until_decided=until_decided,
        max_seeds=max_seeds,
        higher_is_better=higher_is_better,
        possible=possible,
        metric=metric or "metric",
    )
    if budget is not None:
        checks.real("budget", budget, positive=True)
    if page is not None:
        check_place("page", Path(page), ".html")
    for order in question.orders:
        _order(order, num_samples, batch_size, 0)  # an order that does not fit fails before the first training
    path = None if page is None else Path(page)
    trainings = _Trainings(train, metric, Outcomes(question), num_samples, batch_size, path)
    outcomes = trainings.outcomes
    try:
        outcomes.run_until_decided(trainings.run, budget=budget)
    except BaseException:
        if any(outcomes.values.values()):
            outcomes.stopped = "it was interrupted"
            trainings.answer()
        raise
    return trainings.answer()


@dataclass
class _Trainings:
    """The trainings of one comparison, how they ended, and their further numbers by name, order and seed."""

    train: Training
    metric: str | None
    outcomes: Outcomes
    num_samples: int
    batch_size: int
    page: Path | None
    besides: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)

    def run(self, seeds: Sequence[int]) -> None:
        """Train with every order, all orders of a seed before the next seed."""
        for seed in seeds:
            for order in self.outcomes.question.orders:
                self._run_one(order, seed)

    def _run_one(self, order: str, seed: int) -> None:
        made = _order(order, self.num_samples, self.batch_size, seed)
        try:
            found = self.train(made, seed)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            if not self.outcomes.fail(order, seed, message):
                raise RuntimeError(f"the training of {order} with seed {seed} failed: {message}") from error
            return
        self.outcomes.add(order, seed, _value(found, self.metric, order, seed))
        if isinstance(found, Mapping) and self.metric is not None:
            for name, value in found.items():
                if name != self.metric and isinstance(value, Real) and math.isfinite(value):
                    self.besides.setdefault(str(name), {}).setdefault(order, {})[seed] = float(value)

    def answer(self) -> Answer:
        """Return the answer over what has ended, and write its page if there is to be one."""
        answer = make_answer(self.outcomes, besides=self.besides, page=self.page)
        if self.page is not None:
            write_page(answer, "A training function of your own")
        return answer


def _order(name: str, num_samples: int, batch_size: int, seed: int) -> Order:
    """Return an order whose batches are all full: a short one, which not all orders have, is dropped."""
    check_fittable(name, {})
    order = build_order(name, num_samples, batch_size, seed=seed)
    if num_samples % batch_size == 0 or batch_size > num_samples:
        return order
    return FittedOrder(order, num_samples // batch_size, batch_size)


def _value(found: float | Mapping[str, float], metric: str | None, order: str, seed: int) -> float:
    """Return the number that decides."""
    name = f"what train returned for {order} and seed {seed}"
    if isinstance(found, Mapping):
        if metric is None and len(found) == 1:
            (metric,) = found
        if metric is None:
            raise ValueError(f"metric should say which of {', '.join(map(str, found))} decides, but got None")
        if metric not in found:
            raise ValueError(f"metric should be one of {', '.join(map(str, found))}, but got {metric!r}")
        found, name = found[metric], f"{metric} that train returned for {order} and seed {seed}"
    elif metric is not None:
        raise ValueError(f"metric should be None, since train returned one number, but got {metric!r}")
    return checked_metric(found, name)
