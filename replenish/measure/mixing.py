"""How well a pool of M slots mixes a stream: numbers for choosing `pool_size`.

A step draws a slot with probability B/M, so an item stays Geometric(B/M) steps in the pool: M/B on average, in which M
further items are read. The pool is thus a window that looks back over about the last M items, with exponentially
falling weight. It mixes a stream that is sorted by label well if the runs of equal labels are short compared with M,
and hardly at all if they are longer. Then only a larger pool helps, or shards that are read in another order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.protocol import Order
from replenish.orders.sequenced_replacement import SequencedReplacement


class Mixing(NamedTuple):
    """How a pool of `pool_size` mixes the labels of a stream into batches.

    `distance` is the mean over batches of the total variation distance between the labels of a batch and the labels of
    all data. It is 0 if every batch has all labels in their shares. A full shuffle has a distance above 0 too, since
    batches are small. `excess` rescales it: 0 is as well mixed as a full shuffle, 1 is batches of one label each.
    """

    pool_size: int
    mean_stay: float  # steps that an item spends in the pool: M/B
    stay_99: int  # steps within which 99 % of the items are drawn
    labels: float  # distinct labels in a batch, on average
    shuffled_labels: float  # the same after a full shuffle
    distance: float
    shuffled_distance: float  # the same after a full shuffle
    unmixed_distance: float  # the same if every batch had one label

    @property
    def excess(self) -> float:
        """Return (distance - shuffled_distance) / (unmixed_distance - shuffled_distance)."""
        room = self.unmixed_distance - self.shuffled_distance
        return (self.distance - self.shuffled_distance) / room if room > 0 else 0.0


def residence_quantile(pool_size: int, batch_size: int, probability: float) -> int:
    """Return the number of steps within which an item is drawn with at least `probability`.

    An item escapes t draws with probability (1 - B/M)^t, so this is ln(1 - probability) / ln(1 - B/M), rounded up.
    The whole law is `replenish.theory.residence_probability`.

    Example:
        >>> residence_quantile(10_000, 64, 0.5), residence_quantile(10_000, 64, 0.99)
        (108, 718)
    """
    size = checks.integer("pool_size", pool_size, minimum=1)
    batch = checks.integer("batch_size", batch_size, minimum=1)
    if batch > size:
        raise ValueError(f"pool_size should be at least batch_size, but got pool_size={size} and batch_size={batch}")
    probability = checks.real("probability", probability, maximum=1, positive=True)
    if probability == 1:
        raise ValueError(f"probability should be below 1, but got {probability}")
    if batch == size:
        return 1
    # Subtract a little, so that rounding errors do not turn an exact whole number into the next one.
    return max(1, math.ceil(math.log1p(-probability) / math.log1p(-batch / size) - 1e-9))


def measure_mixing(
    labels: npt.ArrayLike, batch_size: int, pool_sizes: Iterable[int], *, seed: int = 0, epochs: int = 1
) -> list[Mixing]:
    """Measure, for each pool size, how labels in this order are spread over batches.

    The batches are exactly those that `PooledStream` draws from the same stream, repeated. They are counted from the
    step by which 99 % of the initial pool is drawn, since the first batches do not show the steady state.

    Args:
        labels: One label per item, in the order of the stream; integers or strings.
        batch_size: How many items a batch has.
        pool_sizes: The pool sizes to compare, each at least `batch_size`.
        seed: Chooses the draws.
        epochs: Over how many passes of the stream to measure.

    Example:
        >>> small, large = measure_mixing([0] * 500 + [1] * 500, 10, [20, 1000])
        >>> small.excess > 0.8, large.excess < 0.3
        (True, True)
    """
    array = checks.array("labels", labels)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"labels should be a list of at least one label, but got an array of shape {array.shape}")
    if array.dtype.kind not in "iubUS":
        raise TypeError(f"labels should be integers or strings, but got {array.dtype}; number the classes")
    if not isinstance(pool_sizes, Iterable):
        raise TypeError(f"pool_sizes should be a list of pool sizes, but got {pool_sizes!r}; give [{pool_sizes!r}]")
    sizes = [checks.integer("each of pool_sizes", size, minimum=1) for size in pool_sizes]
    if not sizes:
        raise ValueError("pool_sizes should have at least one size, but got none")
    epochs = checks.integer("epochs", epochs, minimum=1)
    _, codes = np.unique(array, return_inverse=True)
    count = len(codes)
    batch_size = checks.integer("batch_size", batch_size, minimum=1)
    steps = max(1, epochs * count // batch_size)
    shuffled = _spread(RandomReshuffling(count, batch_size, seed=seed, drop_last=batch_size <= count), codes, 0, steps)
    unmixed = 1 - float(np.sum((np.bincount(codes) / count) ** 2))
    found = []
    for size in sizes:
        order = SequencedReplacement(count, batch_size, seed=seed, pool_size=size, sequence="identity")
        stay = residence_quantile(size, batch_size, 0.99)
        labels_seen, distance = _spread(order, codes, stay, stay + steps)
        found.append(Mixing(size, size / batch_size, stay, labels_seen, shuffled[0], distance, shuffled[1], unmixed))
    return found


def _spread(order: Order, codes: npt.NDArray[np.intp], start: int, stop: int) -> tuple[float, float]:
    """Return the mean number of distinct labels in a batch, and the mean distance of its labels from all data's."""
    overall = np.bincount(codes) / len(codes)
    distinct = distance = 0.0
    for batch in order.batches(start, stop):
        counts = np.bincount(codes[batch], minlength=len(overall))
        distinct += int(np.count_nonzero(counts))
        distance += 0.5 * float(np.abs(counts / len(batch) - overall).sum())
    return distinct / (stop - start), distance / (stop - start)
