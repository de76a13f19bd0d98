"""How often a sample was drawn before, and at which steps: what people ask when a loss spikes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.locks import ForkSafeLock
from replenish.orders.protocol import Order, check_order


def counts_before(order: Order, step: int) -> Int64Array:
    """Return how often each sample was drawn in the steps before `step`, exactly.

    For SRS this costs as much as a jump to `step`, since draws = copies inserted - copies in the pool. For an order
    whose epochs have every sample once, and for stratified batches, at most an epoch is drawn. For all other orders,
    every step before `step` is drawn.

    Args:
        order: Any order.
        step: The step to count up to.

    Example:
        >>> from replenish import RandomReshuffling
        >>> counts_before(RandomReshuffling(num_samples=6, batch_size=2), step=3 * 10**9).tolist()
        [1000000000, 1000000000, 1000000000, 1000000000, 1000000000, 1000000000]
    """
    order, step = check_order(order), checks.step(step)
    own: Callable[[int], Int64Array] | None = getattr(order, "counts_before", None)
    if own is not None:
        return own(step)
    counts = np.zeros(order.num_samples, dtype=np.int64)
    add_visits(counts, order, 0, step)
    return counts


def add_visits(counts: Int64Array, order: Order, start: int, stop: int) -> None:
    """Add to `counts` how often each sample is drawn in the steps from `start` to `stop`."""
    for row in _in_blocks(order, start, stop):
        samples = row.ravel()
        if 8 * samples.size < counts.size:
            np.add.at(counts, samples, 1)
        else:
            counts += np.bincount(samples, minlength=counts.size)


def _in_blocks(order: Order, start: int, stop: int) -> Iterator[Int64Array]:
    """Yield the batches from `start` to `stop`, one step per row, many steps at a time where the order can."""
    blocks: Callable[[int, int], Iterator[Int64Array]] | None = getattr(order, "blocks", None)
    if blocks is None:
        return (batch.reshape(1, -1) for batch in order.batches(start, stop))
    return blocks(start, stop)


def visits_of(order: Order) -> Callable[[int], Int64Array]:
    """Return `order.visits`, or `Visits(order).at` for an order of your own, which does not need that method."""
    own: Callable[[int], Int64Array] | None = getattr(order, "visits", None)
    return Visits(order).at if own is None else own


class Visits:
    """How often each sample of a batch was drawn before, by counting. Consecutive steps cost O(batch_size) each.

    `order.visits` uses it where nothing cheaper is known. It also works for your own orders, which need not have a
    method `visits`. A sample that a batch holds twice is visited twice: earlier places of the same batch count.

    Args:
        order: Any order. A step that does not follow the last one costs what `counts_before` costs.

    Example:
        >>> from replenish import IndependentDraws
        >>> order = IndependentDraws(num_samples=3, batch_size=4)
        >>> visits = Visits(order)
        >>> order.batch(0).tolist(), visits.at(0).tolist()
        ([2, 2, 2, 2], [0, 1, 2, 3])
        >>> order.batch(1).tolist(), visits.at(1).tolist()
        ([1, 2, 0, 0], [0, 4, 0, 1])
    """

    def __init__(self, order: Order) -> None:
        self.order = check_order(order)
        self._lock = ForkSafeLock()
        # The counts before a step, and the step: one pair, so that an interrupt cannot separate them.
        self._counted: tuple[int, Int64Array] | None = None

    def at(self, step: int) -> Int64Array:
        """Return how often the sample at each place of the batch of `step` was drawn before."""
        step = checks.step(step)
        with self._lock.lock:
            counted, self._counted = self._counted, None
            if counted is None or not 0 <= step - counted[0] <= self.order.steps_per_epoch:
                counted = (step, counts_before(self.order, step))
            counts = counted[1]
            add_visits(counts, self.order, counted[0], step)
            batch = self.order.batch(step)
            visits = counts[batch] + earlier_in(batch)
            np.add.at(counts, batch, 1)
            self._counted = (step + 1, counts)
        return visits


def earlier_in(batch: Int64Array) -> Int64Array:
    """Return for each entry how often its value occurs at earlier places."""
    by_sample = np.argsort(batch, kind="stable")
    in_order = batch[by_sample]
    first = np.searchsorted(in_order, in_order, side="left")
    earlier = np.empty(len(batch), dtype=np.int64)
    earlier[by_sample] = np.arange(len(batch)) - first
    return earlier


def steps_of(order: Order, sample: int, start: int = 0, stop: int | None = None) -> Int64Array:
    """Return the steps from `start` to `stop` whose batch has `sample`.

    Every step from `start` to `stop` is drawn, at some tens of nanoseconds per sample.

    Args:
        order: Any order.
        sample: The sample's index.
        start: The first step.
        stop: The step to end before; None means an effective epoch later.

    Example:
        >>> from replenish import RandomReshuffling
        >>> len(steps_of(RandomReshuffling(num_samples=100, batch_size=10), sample=42, start=0, stop=50))
        5
    """
    order = check_order(order)
    sample = checks.integer("sample", sample, minimum=0, maximum=order.num_samples - 1)
    start = checks.step(start, "start")
    stop = start + order.steps_per_epoch if stop is None else checks.step(stop, "stop")
    found = [np.empty(0, dtype=np.int64)]
    for block in _in_blocks(order, start, stop):
        found.append(start + np.flatnonzero((block == sample).any(axis=1)))
        start += len(block)
    return np.concatenate(found)
