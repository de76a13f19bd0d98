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
    """Train with several orders over several seeds, and report which is better.

    Every batch is full: if `batch_size` does not divide `num_samples`, the short batch at the end of an epoch is
    dropped, so that all orders see equally many samples. All orders of a seed are trained before the next seed.
    Seed everything except the order of the data with `seed`. Then the trainings of one seed differ in the order only,
    and their differences are taken seed by seed.

    The answer leaves out a training that raises an error or returns NaN, and names its order and seed. After an
    interrupt (Ctrl-C) the page, if there is one, has the trainings that ended before.

    Args:
        train: Called as `train(order, seed)`, it trains with the order's batches and returns a number, or several by
            name. Give the order to `OrderBatchSampler`, or iterate `order.batches()`.
        num_samples: The number of training samples.
        batch_size: The size of a batch, over all processes.
        orders: Names of orders; each of the others is compared with the first.
        seeds: A number of seeds, which are then 0, 1, 2, ... (5 by default), or the seeds themselves.
        metric: Which number decides, if `train` returns several.
        higher_is_better: Whether larger values are better, as for accuracy.
        margin: The largest difference that does not matter, in the metric's unit.
        until_decided: Whether to look after every seed and stop once it is decided. Leave out `seeds` then.
        max_seeds: The most seeds to run with `until_decided`; 40 by default.
        budget: Seconds for all trainings. A seed starts only if it would end in time, judging by those before.
        possible: The least and the greatest value that the metric can have.
        page: A path ending in `.html`, for a page with the answer, every seed and the intervals.

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
    path = None if page is None else Path(page)
    if path is not None:
        check_place("page", path, ".html")
    for order in question.orders:
        _order(order, num_samples, batch_size, 0)  # an order that does not fit fails before the first training
    outcomes = Outcomes(question)
    trainings = _Trainings(train, metric, outcomes, num_samples, batch_size, path)
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
    """The trainings of one comparison, their outcomes, and their further numbers by name, order and seed."""

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
        """Return the answer from the trainings that have ended, and write its page if one was asked for."""
        answer = make_answer(self.outcomes, besides=self.besides, page=self.page)
        if self.page is not None:
            write_page(answer, "A training function of your own")
        return answer


def _order(name: str, num_samples: int, batch_size: int, seed: int) -> Order:
    """Return an order without short batches, since not all orders have them."""
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
