"""Block shuffle: shards in random order, samples shuffled within a window of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.arrangement import shuffle_stretches
from replenish.orders.epochs import EpochOrder
from replenish.orders.shards import Shards


class BlockShuffle(EpochOrder):
    """For data in shards: every epoch reads them in a new random order and shuffles the samples within windows.

    With windows of whole shards this is CorgiPile (Xu et al., "In-database machine learning with CorgiPile", 2022),
    which opens every shard once an epoch; with any other window it is `py1b` of mosaicml/streaming on one canonical
    node, where a shard may lie in two windows. `staggered` windows, as in `py1br`, end elsewhere in every epoch: each
    has a random length from 3/4 to 5/4 of `window`, and the first is shortened at random.

    A jump to any step costs the draws of one epoch. `shard_opens` counts what an epoch opens.

    Args:
        num_samples, batch_size, seed, drop_last: As of `RandomReshuffling`.
        shard_size: How many samples a shard has, the last one perhaps fewer; or an array of all sizes.
        window: How many samples are shuffled together; None means ten of the largest shards.
        staggered: Whether windows have random lengths and begin at a random place.

    Example:
        >>> order = BlockShuffle(num_samples=100, batch_size=20, shard_size=10, window=20)
        >>> len(set((order.batch(0) // 10).tolist()))
        2
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        shard_size: int | npt.ArrayLike,
        seed: int = 0,
        window: int | None = None,
        staggered: bool = False,
        drop_last: bool = False,
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self._shards = Shards(shard_size, self.num_samples)
        self.shard_size = self._shards.argument
        self.window = self._shards.window(window, maximum=2**61)
        self.staggered = checks.boolean("staggered", staggered)

    def _permutation(self, words: KeyedWords) -> Int64Array:
        samples, _ = self._shards.in_random_order(words)
        shuffle_stretches(words, samples, self._windows(words))
        return samples

    def _windows(self, words: KeyedWords) -> list[int]:
        """Return the lengths of the windows of an epoch."""
        least = 3 * self.window // 4
        if self.staggered and least:
            longest = 5 * self.window // 4
            lengths = least + words.below(longest - least + 1, self.num_samples // least + 2)
            lengths[0] -= int(words.below(least, 1)[0])  # at least one is left
        else:
            lengths = np.full(self.num_samples // self.window + 1, self.window)
        ends = np.minimum(np.cumsum(lengths), self.num_samples)
        return [length for length in np.diff(ends, prepend=0).tolist() if length]
