"""Jitter: shards in random order, every sample moved a little."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array, KeyedWords
from replenish.orders.arrangement import shuffle_stretches, spread_order
from replenish.orders.epochs import EpochOrder
from replenish.orders.shards import Shards

_GRID = 20  # bits: places are compared in parts of 2**-20


class Jitter(EpochOrder):
    """For data in shards: every epoch lays them out in a new random order and moves each sample by a random distance.

    This is `py1e` of mosaicml/streaming, its default, on one canonical node: the samples of a shard are shuffled, and
    each then moves by a uniform distance, such that those of one shard spread over a range of about `window` places
    (a random length from 3/4 to 5/4 of it for every shard) that stays within the epoch. Shards so come into use and
    leave it one by one, while `BlockShuffle` changes a whole window of them at once.

    A jump to any step costs the draws of one epoch. `shard_opens` counts what an epoch opens.

    Args:
        num_samples, batch_size, seed, drop_last: As of `RandomReshuffling`.
        shard_size: How many samples a shard has, the last one perhaps fewer; or an array of all sizes.
        window: Over how many places the samples of a shard spread; None means ten of the largest shards.

    Example:
        >>> order = Jitter(num_samples=1000, batch_size=10, shard_size=10, window=100)
        >>> first = order.batch(0) // 10
        >>> bool(len(set(first.tolist())) > 1)
        True
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        shard_size: int | npt.ArrayLike,
        seed: int = 0,
        window: int | None = None,
        drop_last: bool = False,
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self._shards = Shards(shard_size, self.num_samples)
        self.shard_size = self._shards.argument
        self.window = self._shards.window(window, maximum=2**40)

    def _permutation(self, words: KeyedWords) -> Int64Array:
        samples, sizes = self._shards.in_random_order(words)
        shuffle_stretches(words, samples, sizes.tolist())
        least, longest = 3 * self.window // 4, 5 * self.window // 4
        reach = np.maximum(least + words.below(longest - least + 1, len(sizes)) - sizes, 0) << (_GRID - 1)  # its half
        before = (np.cumsum(sizes) - sizes) << _GRID
        after = (self.num_samples - np.cumsum(sizes)) << _GRID
        lowest, highest = -np.minimum(reach, before), np.minimum(reach, after)
        places = self._moves(words, highest - lowest, sizes)  # here and below in place: new memory costs most of all
        places += np.repeat(lowest, sizes)
        places += np.arange(0, self.num_samples << _GRID, 1 << _GRID)
        return samples[spread_order(places, self.num_samples << _GRID)]

    def _moves(self, words: KeyedWords, widths: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return for each sample a uniform number in [0, width of its shard): a random word of 32 bits times that."""
        random = words.words(self.num_samples)
        random >>= np.uint64(32)
        if int(widths.max()) < 2**32:
            random *= np.repeat(widths.astype(np.uint64), sizes)
            random >>= np.uint64(32)
            return random.view(np.int64)
        # In two halves, so that nothing exceeds 64 bits.
        width = np.repeat(widths.astype(np.uint64), sizes)
        low, high = width & np.uint64(2**32 - 1), width >> np.uint64(32)
        return (high * random + (low * random >> np.uint64(32))).view(np.int64)
