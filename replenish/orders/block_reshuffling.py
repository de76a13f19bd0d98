"""Block reshuffling: blocks drawn once, their order and their samples shuffled in every epoch."""

from __future__ import annotations

from replenish import checks
from replenish.draws import Int64Array, KeyedWords, Purpose
from replenish.orders.arrangement import permutation, shuffle_stretches
from replenish.orders.epochs import EpochOrder
from replenish.orders.shards import Shards


class BlockReshuffling(EpochOrder):
    """Samples are divided into blocks once, at random; every epoch shuffles the blocks, and the samples within each.

    Between `ShuffleOnce`, whose batches never change, and `RandomReshuffling`, whose samples meet anew in every
    epoch: here the samples of a block always come together. Nguyen, Phan and Kalagnanam, "Learning to shuffle: block
    reshuffling and reversal schemes" (2026), name the scheme; their adaptive choice of blocks is not here.

    Args:
        num_samples, batch_size, seed, drop_last: As of `RandomReshuffling`.
        block_size: How many samples make a block, the last one perhaps fewer; None means ten batches.

    Example:
        >>> order = BlockReshuffling(num_samples=12, batch_size=4, block_size=4)
        >>> blocks = [{frozenset(batch.tolist()) for batch in order.batches(3 * e, 3 * e + 3)} for e in (0, 1)]
        >>> blocks[0] == blocks[1]
        True
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        seed: int = 0,
        block_size: int | None = None,
        drop_last: bool = False,
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        if block_size is None:
            block_size = 10 * self.batch_size
        self.block_size = checks.integer("block_size", block_size, minimum=1)
        self._blocks_of_places = Shards(self.block_size, self.num_samples)

    def _permutation(self, words: KeyedWords) -> Int64Array:
        # Drawn for every epoch anew rather than kept: half of the cost, and no memory in an order that only waits.
        divided = permutation(KeyedWords(self.seed, Purpose.SEQUENCE).at(self.num_samples), self.num_samples)
        places, sizes = self._blocks_of_places.in_random_order(words)
        samples = divided[places]
        shuffle_stretches(words, samples, sizes.tolist())
        return samples
