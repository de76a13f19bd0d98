"""A mixture: several sources in stated shares, each in its own order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose, derived_seed
from replenish.orders.arrangement import shuffle_stretches, stable_order
from replenish.orders.cursor import Cursor, CursorOrder, from_json, to_json
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.shares import Quotas, Sources, whole_shares
from replenish.orders.visits import counts_before, earlier_in

STREAM = "mixture-v1"

# The least average number of draws per source in a block: each source costs some microseconds per block.
DRAWS_PER_SOURCE = 64

Weights = tuple[float, ...] | None


class Mixture(CursorOrder):
    """Several datasets in stated shares: every batch has each source's share, rounded down or up.

    A source with the share w of a batch of B gets the whole part of B w in every batch, and at some steps one sample
    more. These steps are spread so that its count up to any step stays within a few of its exact share; `source_counts`
    returns the count in closed form. Each source is read in its own order, whose epochs do not depend on the batches.
    So any step is reached at once, and a change of the shares by `stages` neither loses nor repeats a sample.

    Indices are as in torch's `ConcatDataset`: the samples of the first source, then the samples of the second, and so
    on. `locate` returns the source and the index within it. The places of the sources in a batch are shuffled, so that
    several processes can take equal parts of it.

    Args:
        sizes: How many samples each source has.
        weights: The share of each source, in any unit; zero leaves the source out. None means the sizes. Shares that
            are not whole numbers are rounded to multiples of 2**-32.
        batch_size: How many samples a step draws, over all processes: B.
        seed: Chooses all draws; in [0, 2**63).
        stages: Pairs (until_step, weights) in ascending order: the weights of a stage hold before `until_step`. The
            argument `weights` holds after the last stage.
        orders: The order of each source, one of the library's, or None for reshuffling with computed permutations.
            None instead of a list means reshuffling for all. The batch sizes of these orders do not matter.

    Example:
        >>> mixture = Mixture([1000, 50], [3, 1], batch_size=8)
        >>> [np.bincount(mixture.locate(batch)[0]).tolist() for batch in mixture.batches(0, 3)]
        [[6, 2], [6, 2], [6, 2]]
        >>> mixture.source_counts(10**15)
        [6000000000000000, 2000000000000000]
    """

    def __init__(
        self,
        sizes: Sequence[int] | npt.NDArray[np.integer[Any]],
        weights: Sequence[float] | npt.NDArray[Any] | None,
        batch_size: int,
        *,
        seed: int = 0,
        stages: Sequence[tuple[int, Sequence[float]]] | None = None,
        orders: Sequence[CursorOrder | None] | None = None,
    ) -> None:
        self.sizes = _checked_sizes(sizes)
        super().__init__(sum(self.sizes), batch_size, seed=seed)
        self.weights = _checked_weights("weights", weights, len(self.sizes))
        self.stages = _checked_stages(stages, len(self.sizes))
        self.orders = _checked_orders(orders, self.sizes)
        self._ends = np.cumsum(self.sizes)

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely; lists and orders are JSON."""
        orders = None if self.orders is None else [None if each is None else each.config() for each in self.orders]
        return {
            "order": "Mixture",
            "stream": STREAM,
            "num_samples": self.num_samples,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "sizes": to_json(self.sizes),
            "weights": to_json(self.weights),
            "stages": to_json(self.stages),
            "orders": to_json(orders),
        }

    def _same_before(self, config: Mapping[str, Any], step: int) -> bool:
        if config.get("order") != "Mixture":
            return False
        own = self.config()
        if any(config.get(name) != own[name] for name in own if name not in ("weights", "stages")):
            return False
        stages = _checked_stages(from_json("stages", config.get("stages")), len(self.sizes))
        weights = _checked_weights("weights", from_json("weights", config.get("weights")), len(self.sizes))
        return _schedule(stages, weights, step) == _schedule(self.stages, self.weights, step)

    def locate(self, indices: npt.ArrayLike) -> tuple[Int64Array, Int64Array]:
        """Return (sources, indices within the sources) for indices of this order.

        Example:
            >>> [part.tolist() for part in Mixture([10, 20], None, 2).locate([9, 10, 29])]
            [[0, 1, 1], [9, 0, 19]]
        """
        array = checks.array("indices", indices)
        if array.dtype.kind not in "iu" or (array.size and not 0 <= array.min() <= array.max() < self.num_samples):
            raise ValueError(f"indices should be integers in [0, {self.num_samples}), but got {indices!r}")
        array = array.astype(np.int64)
        sources = np.searchsorted(self._ends, array, side="right")
        return sources, array - (self._ends - np.array(self.sizes))[sources]

    def source_counts(self, step: int) -> list[int]:
        """Return how many samples of each source the steps before `step` draw, by a closed form."""
        return self._drawn(0, checks.step(step), self.batch_size)

    def _drawn(self, start: int, stop: int, batch_size: int) -> list[int]:
        """Return how many samples of each source the steps from `start` to `stop` draw, in batches of `batch_size`."""
        counts = [0] * len(self.sizes)
        for first, end, quotas in self._quotas(start, stop, batch_size):
            before, after = quotas.counts_before(first), quotas.counts_before(end)
            counts = [count + b - a for count, a, b in zip(counts, before, after, strict=True)]
        return counts

    def _quotas(self, start: int, stop: int, batch_size: int) -> list[tuple[int, int, Quotas]]:
        """Return (first step, step to end before, quotas) of each stage from `start` to `stop`."""
        parts = []
        for until, weights in (*self.stages, (max(stop, start), self.weights)):
            if start < min(until, stop):
                parts.append((start, min(until, stop), self._quotas_of(weights, batch_size)))
                start = min(until, stop)
        return parts

    def _quotas_of(self, weights: Weights, batch_size: int) -> Quotas:
        # Quotas count absolute steps, so that a stage that is added later does not change the steps before it.
        return Quotas(whole_shares(np.array(self.sizes if weights is None else weights, float)), batch_size, self.seed)

    def visits(self, step: int) -> Int64Array:
        """Return how often the sample at each place of the batch of `step` was drawn before."""
        if self.orders is not None:
            return super().visits(step)
        sources, _ = self.locate(self.batch(step))
        before = self.source_counts(step)
        places = earlier_in(sources)
        visits = np.empty(len(sources), dtype=np.int64)
        for source in np.unique(sources).tolist():
            rounds, rest = divmod(before[source], self.sizes[source])
            mine = sources == source
            visits[mine] = min(rounds, 2**62) + (rest + places[mine]) // self.sizes[source]
        return visits

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`; it costs a jump in every source."""
        counts = np.empty(self.num_samples, dtype=np.int64)
        for order, end, draws in zip(self._orders(), self._ends.tolist(), self.source_counts(step), strict=True):
            whole, place = order._step_of_draw(draws)
            own = counts_before(order, whole)
            np.add.at(own, order.batch(whole)[:place], 1)
            counts[end - order.num_samples : end] = own
        return counts

    def _orders(self) -> list[CursorOrder]:
        """Return the order of each source; the default ones draw one sample per step."""
        orders: Sequence[CursorOrder | None] = self.orders or [None] * len(self.sizes)
        return [
            RandomReshuffling(size, 1, seed=derived_seed(self.seed, "source", number), computed=True)
            if order is None
            else order
            for number, (size, order) in enumerate(zip(self.sizes, orders, strict=True))
        ]

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _MixtureCursor(self, self.batch_size, 0, [0] * len(self.sizes))

    def _rebatched_cursor(self, batch_size: int, at_step: int) -> Cursor:
        return _MixtureCursor(self, batch_size, at_step, self.source_counts(at_step))


def mixture_in(order: object) -> Mixture | None:
    """Return the order if it is a mixture, or the mixture inside it (as in `Skipping`), or None."""
    while not isinstance(order, Mixture):
        order = getattr(order, "order", None)
        if order is None:
            return None
    return order


class _MixtureCursor(Cursor):
    """The sources, each at the place where the next block begins."""

    def __init__(self, mixture: Mixture, batch_size: int, first_step: int, drawn: list[int]) -> None:
        self._mixture, self._batch_size = mixture, batch_size
        self._first_step, self._drawn = first_step, drawn
        draws = max(DRAWS_PER_BLOCK, DRAWS_PER_SOURCE * len(mixture.sizes))
        self._steps = -(-draws // batch_size)
        self._words = KeyedWords(mixture.seed, Purpose.MIXTURE)
        self._orders = mixture._orders()
        # The step that the sources have reached, and the sources: one pair, so that an interrupt cannot separate them.
        self._reached: tuple[int, Sources] | None = None

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        mixture, size, number = self._mixture, self._batch_size, step // self._steps
        first, end = max(self._first_step, number * self._steps), (number + 1) * self._steps
        reached, self._reached = self._reached, None
        if reached is None or reached[0] != first:
            new = mixture._drawn(self._first_step, first, size)
            before = [drawn + more for drawn, more in zip(self._drawn, new, strict=True)]
            reached = (first, Sources(self._orders, before) if reached is None else reached[1].move_to(before))
        parts = mixture._quotas(first, end, size)
        sources = np.concatenate([quotas.classes(a, b - a) for a, b, quotas in parts]).ravel()
        shuffle_stretches(self._words.at(number), sources, [size] * (end - first))
        counts = np.bincount(sources, minlength=len(mixture.sizes))
        samples = np.empty(sources.size, dtype=np.int64)
        samples[stable_order(sources, len(counts))] = reached[1].draw(counts)
        self._reached = (end, reached[1])
        return first, samples.reshape(-1, size)


def _checked_sizes(sizes: Any) -> tuple[int, ...]:
    array = checks.array("sizes", sizes)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(f"sizes should list how many samples each source has, but got {sizes!r}")
    return tuple(
        checks.integer(f"sizes[{number}]", size, minimum=1, maximum=2**62) for number, size in enumerate(array.tolist())
    )


def _checked_weights(name: str, weights: Any, count: int) -> Weights:
    if weights is None:
        return None
    array = checks.array(name, weights)
    if array.shape != (count,):
        raise ValueError(
            f"{name} should have one number for each of the {count} sources, but got an array of shape {array.shape}"
        )
    checks.check_weights(name, array)
    # 3.0 becomes 3, so that equal weights are equal in configs.
    return tuple(int(each) if float(each).is_integer() and abs(each) < 2**53 else each for each in array.tolist())


def _checked_stages(stages: Any, count: int) -> tuple[tuple[int, Weights], ...]:
    if stages is not None and not isinstance(stages, (list, tuple)):
        raise ValueError(f"stages should list pairs (until_step, weights), but got {stages!r}")
    checked: list[tuple[int, Weights]] = []
    for number, stage in enumerate(stages or ()):
        if not isinstance(stage, (list, tuple)) or len(stage) != 2:
            raise ValueError(f"stages should be pairs (until_step, weights), but got {stage!r} at {number}")
        until = checks.step(stage[0], f"until_step of stage {number}")
        least = checked[-1][0] if checked else 0
        if until <= least:
            raise ValueError(f"stages should end at ascending steps, but got until_step={until} after {least}")
        checked.append((until, _checked_weights(f"the weights of stage {number}", stage[1], count)))
    return tuple(checked)


def _checked_orders(orders: Any, sizes: tuple[int, ...]) -> tuple[CursorOrder | None, ...] | None:
    if orders is None:
        return None
    if not isinstance(orders, (list, tuple)) or len(orders) != len(sizes):
        raise ValueError(
            f"orders should list an order or None for each of the {len(sizes)} sources, but got {orders!r}"
        )
    for number, (order, size) in enumerate(zip(orders, sizes, strict=True)):
        if order is None:
            continue
        if not isinstance(order, CursorOrder):
            raise TypeError(
                f"orders[{number}] should be one of replenish's orders or None, but got a {type(order).__name__}"
            )
        order.draws_before(0)  # raises where batches have random sizes
        if order.num_samples != size:
            raise ValueError(
                f"orders[{number}] should have the {size} samples of its source, but has "
                f"num_samples={order.num_samples}"
            )
    return tuple(orders) if any(order is not None for order in orders) else None


def _schedule(stages: tuple[tuple[int, Weights], ...], weights: Weights, step: int) -> list[tuple[int, Weights]]:
    """Return the weights of the steps before `step`, as (until step, weights); equal neighbours are merged."""
    schedule: list[tuple[int, Weights]] = []
    start = 0
    for until, own in (*stages, (step, weights)):
        if start < min(until, step):
            start = min(until, step)
            if schedule and schedule[-1][1] == own:
                schedule.pop()
            schedule.append((start, own))
    return schedule
