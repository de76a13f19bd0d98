"""Shuffles for data that are read shard by shard: with windows, with jitter, with a buffer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.arrangement import shuffle_stretches, spread_order, stable_order
from replenish.orders.epochs import EpochOrder
from replenish.orders.shards import Shards


class BlockShuffle(EpochOrder):
    """For data in shards: every epoch reads them in a new random order and shuffles the samples within windows.

    With windows of whole shards this is CorgiPile (Xu et al., "In-database machine learning with CorgiPile", 2022),
    which opens every shard once per epoch. With any other window it is `py1b` of mosaicml/streaming on one canonical
    node, where a shard may lie in two windows. `staggered` windows, as in `py1br`, end at other places in every epoch:
    each has a random length from 3/4 to 5/4 of `window`, and the first is shortened at random.

    A jump to any step costs the draws of one epoch. `shard_opens` counts the shards that an epoch opens.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        shard_size: How many samples a shard has (the last may have fewer), or an array of all sizes.
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


_GRID = 20  # bits: places are compared in units of 2**-20


class Jitter(EpochOrder):
    """For data in shards: every epoch lays them out in a new random order and moves each sample by a random distance.

    This is `py1e` of mosaicml/streaming, its default, on one canonical node. The samples of a shard are shuffled, and
    each then moves by a uniform distance. The samples of one shard then spread over about `window` places (a random
    length from 3/4 to 5/4 of it for every shard), all within the epoch. So shards come into use and go out of use one
    by one, while `BlockShuffle` changes a whole window of them at once.

    A jump to any step costs the draws of one epoch. `shard_opens` counts the shards that an epoch opens.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        shard_size: How many samples a shard has (the last may have fewer), or an array of all sizes.
        window: How many places the samples of a shard spread over; None means ten of the largest shards.

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
        reach = np.maximum(least + words.below(longest - least + 1, len(sizes)) - sizes, 0) << (_GRID - 1)  # half
        before = (np.cumsum(sizes) - sizes) << _GRID
        after = (self.num_samples - np.cumsum(sizes)) << _GRID
        lowest, highest = -np.minimum(reach, before), np.minimum(reach, after)
        places = self._moves(words, highest - lowest, sizes)  # in place, here and below: new memory would cost most
        places += np.repeat(lowest, sizes)
        places += np.arange(0, self.num_samples << _GRID, 1 << _GRID)
        return samples[spread_order(places, self.num_samples << _GRID)]

    def _moves(self, words: KeyedWords, widths: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return a uniform number in [0, width of its shard) for each sample: the width times 32 random bits."""
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


class ShuffleBuffer(EpochOrder):
    """A shuffle buffer over data that are read in order, as tf.data's `shuffle(buffer_size)`.

    A buffer starts with the first samples read. Every draw takes a uniformly random sample out of the buffer, and the
    next sample read takes its place. At the end of the data the rest follows in random order, so that an epoch has each
    sample once. A sample never comes more than `buffer_size` places early, but it may stay in the buffer for long: data
    sorted by class stay roughly sorted. WebDataset's `shuffle` is the same once its buffer is full. A buffer that is
    not emptied at the end of an epoch (tf.data's `repeat` before `shuffle`) is `SequencedReplacement` with a
    `pool_size`.

    A jump to any step costs the draws of one epoch.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        buffer_size: How many samples the buffer holds; N or more gives the distribution of `RandomReshuffling`.
        shard_size: How many samples a shard has, or an array of all sizes. The shards are then read in a new random
            order in every epoch. None means that the data are always read in the same order.

    Example:
        >>> order = ShuffleBuffer(num_samples=100, batch_size=10, buffer_size=4)
        >>> bool(order.batch(0).max() < 14)
        True
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        seed: int = 0,
        buffer_size: int = 1000,
        shard_size: int | npt.ArrayLike | None = None,
        drop_last: bool = False,
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self.buffer_size = checks.integer("buffer_size", buffer_size, minimum=1)
        self._shards = Shards(self.num_samples if shard_size is None else shard_size, self.num_samples)
        self.shard_size = self._shards.argument

    def _permutation(self, words: KeyedWords) -> Int64Array:
        size, read = min(self.buffer_size, self.num_samples), None
        if len(self._shards.sizes) > 1:
            read, _ = self._shards.in_random_order(words)
        slots = words.below(size, self.num_samples - size)
        # Draw d returns what the slot's previous draw put there: number size + (that draw) of the samples read. The
        # first draw of a slot returns the slot's own number. Sorted by slot, the two draws are neighbours.
        by_slot = stable_order(slots, size)
        first_of_slot = np.ones(len(slots), dtype=np.bool_)
        first_of_slot[1:] = slots[by_slot[1:]] != slots[by_slot[:-1]]
        found = np.empty(self.num_samples, dtype=np.int64)
        found[by_slot[1:]] = size + by_slot[:-1]
        found[by_slot[first_of_slot]] = slots[by_slot[first_of_slot]]
        # The buffer at the end: what each slot's last draw put there, or the slot's own number.
        left = np.arange(size)
        last_of_slot = by_slot[np.append(first_of_slot[1:], True)[: len(by_slot)]]
        left[slots[last_of_slot]] = size + last_of_slot
        found[len(slots) :] = left[words.permutations(1, size)[0]]
        return found if read is None else read[found]
