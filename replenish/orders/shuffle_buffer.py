"""A shuffle buffer: data read in their order, each sample drawn at random from a few that were read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.arrangement import stable_order
from replenish.orders.epochs import EpochOrder
from replenish.orders.shards import Shards


class ShuffleBuffer(EpochOrder):
    """What `shuffle(buffer_size)` of tf.data makes of data that are read in their order, as an order of indices.

    A buffer starts with the first samples read. Every draw takes one of the buffer, uniformly, and the next sample
    read comes into its place; at the end of the data the rest comes in random order, so that an epoch has each sample
    once. A sample never comes more than `buffer_size` places early, while it may stay long: data sorted by class stay
    roughly sorted. WebDataset's `shuffle` is this once its buffer is full; a buffer that is not emptied at the
    end of an epoch (tf.data's `repeat` before `shuffle`) is `SequencedReplacement` with a `pool_size`.

    A jump to any step costs the draws of one epoch.

    Args:
        num_samples, batch_size, seed, drop_last: As of `RandomReshuffling`.
        buffer_size: How many samples the buffer holds; N or more is `RandomReshuffling` in law.
        shard_size: How many samples a shard has, or an array of all sizes: then the shards are read in a new random
            order in every epoch. None means data that are read in one order for ever.

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
        # Draw number d finds what the draw before it of the same slot put there, which was number size + (that draw)
        # of the samples read; the first of a slot finds the slot's own number. Sorted by slot, they are neighbours.
        by_slot = stable_order(slots, size)
        first_of_slot = np.ones(len(slots), dtype=np.bool_)
        first_of_slot[1:] = slots[by_slot[1:]] != slots[by_slot[:-1]]
        found = np.empty(self.num_samples, dtype=np.int64)
        found[by_slot[1:]] = size + by_slot[:-1]
        found[by_slot[first_of_slot]] = slots[by_slot[first_of_slot]]
        # What is left in the end: of every slot what its last draw put there, or its own number.
        left = np.arange(size)
        last_of_slot = by_slot[np.append(first_of_slot[1:], True)[: len(by_slot)]]
        left[slots[last_of_slot]] = size + last_of_slot
        found[len(slots) :] = left[words.permutations(1, size)[0]]
        return found if read is None else read[found]
