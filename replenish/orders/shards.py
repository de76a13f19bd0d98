"""Data in shards: files of consecutive samples, few of which can be open or in memory at a time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.protocol import Order, check_order

SHARDS_PER_WINDOW = 10  # in the default window; the smallest number that the authors of `py1b` and `py1e` advise


class Shards:
    """Which samples are in which shard: consecutive ones.

    All shards have the same size, except that the last may be smaller, or an array lists all sizes.

    Example:
        >>> Shards(4, num_samples=10).sizes.tolist()
        [4, 4, 2]
    """

    def __init__(self, shard_size: int | npt.ArrayLike, num_samples: int) -> None:
        given: Any = shard_size
        if isinstance(given, (list, tuple)) or getattr(given, "ndim", 0) > 0:
            self.sizes = _checked(given, num_samples)
            self.argument: int | Int64Array = self.sizes
        else:
            self.argument = size = checks.integer("shard_size", given, minimum=1)
            full, rest = divmod(num_samples, size)
            self.sizes = np.array([size] * full + [rest] * (rest > 0), dtype=np.int64)
        self._starts = np.cumsum(self.sizes) - self.sizes

    def window(self, window: int | None, *, maximum: int) -> int:
        """Return the number of samples in a window: None means `SHARDS_PER_WINDOW` of the largest shards."""
        if window is None:
            window = SHARDS_PER_WINDOW * int(self.sizes.max())
        return checks.integer("window", window, minimum=1, maximum=maximum)

    def in_random_order(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        """Return (samples, sizes): the samples, shard by shard in a random order, and the sizes in that order."""
        order = words.permutations(1, len(self.sizes))[0]
        sizes = self.sizes[order]
        places = np.cumsum(sizes) - sizes
        # From one sample to the next the index rises by 1, except at the first sample of a shard.
        samples = np.ones(int(sizes.sum()), dtype=np.int64)
        samples[places] = self._starts[order] - np.concatenate([[0], (self._starts + self.sizes)[order[:-1]] - 1])
        return np.cumsum(samples, out=samples), sizes

    def of(self, samples: Int64Array) -> Int64Array:
        """Return the shard of each sample."""
        return np.searchsorted(self._starts, samples, side="right") - 1


def _checked(shard_size: Any, num_samples: int) -> Int64Array:
    sizes = checks.array("shard_size", shard_size)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise TypeError(
            f"shard_size should be an int or a list of ints, but got an array of shape {sizes.shape} and dtype "
            f"{sizes.dtype}"
        )
    if not sizes.size or sizes.min() < 1 or int(sizes.sum()) != num_samples:
        raise ValueError(
            f"shard_size should list sizes from 1 on with the sum num_samples={num_samples}, but got "
            f"{sizes.size} sizes with the sum {int(sizes.sum())}"
        )
    return checks.read_only(sizes.astype(np.int64))


def shard_opens(
    order: Order, shard_size: int | npt.ArrayLike, *, open_shards: int, start: int = 0, stop: int | None = None
) -> int:
    """Count how often an order opens a shard if only the `open_shards` shards that were used last stay open.

    Use it to choose an order for data in shards. The minimum is one opening per shard and epoch.

    Args:
        order: Any order.
        shard_size: How many samples a shard has, or an array of all sizes.
        open_shards: How many shards are open, or in memory, at a time.
        start: The first step.
        stop: The step to end before; None means an effective epoch later.

    Example:
        >>> from replenish import BlockShuffle, RandomReshuffling
        >>> sizes = {"num_samples": 1000, "batch_size": 10}
        >>> shard_opens(BlockShuffle(**sizes, shard_size=20, window=100), 20, open_shards=5)
        50
        >>> shard_opens(RandomReshuffling(**sizes), 20, open_shards=5) > 800
        True
    """
    open_shards = checks.integer("open_shards", open_shards, minimum=1)
    shards = Shards(shard_size, check_order(order).num_samples)
    start = checks.step(start, "start")
    used: OrderedDict[int, None] = OrderedDict()
    opens = 0
    for batch in order.batches(start, start + order.steps_per_epoch if stop is None else stop):
        for shard in shards.of(batch).tolist():
            if shard in used:
                used.move_to_end(shard)
                continue
            opens += 1
            used[shard] = None
            if len(used) > open_shards:
                used.popitem(last=False)
    return opens
