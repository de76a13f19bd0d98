"""The orders by the names that users type. Configs, commands, tests and docs read this list."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from replenish.orders.cursor import CursorOrder
from replenish.orders.epochs import BlockReshuffling, FlipFlop, PairedReversal, RandomReshuffling, ShuffleOnce
from replenish.orders.length_grouped import LengthGrouped
from replenish.orders.random_batch_sizes import BallsInBins, PoissonDraws, RaggedOrder
from replenish.orders.repeated_augmentation import RepeatedAugmentation
from replenish.orders.replacement import BatchedReplacement, IndependentDraws, WeightedDraws
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.shard_shuffles import BlockShuffle, Jitter, ShuffleBuffer
from replenish.orders.stratified import Stratified

_SHARED = ("num_samples", "batch_size", "seed")


@dataclass(frozen=True)
class OrderEntry:
    """An entry of `ORDERS`.

    Attributes:
        order_class: The class.
        label: Its name for people, as tables and charts print it.
        description: What it does, in one line.
    """

    order_class: type[CursorOrder]
    label: str
    description: str

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its arguments other than the sizes and the seed, which all orders have."""
        names = inspect.signature(self.order_class).parameters
        return tuple(name for name in names if name not in _SHARED)

    @property
    def needs(self) -> tuple[str, ...]:
        """The options without a default, which are facts about the data."""
        parameters = inspect.signature(self.order_class).parameters
        return tuple(name for name in self.options if parameters[name].default is inspect.Parameter.empty)

    @property
    def batch_sizes_vary(self) -> bool:
        """Whether its batches have random sizes."""
        return issubclass(self.order_class, RaggedOrder)


ORDERS: dict[str, OrderEntry] = {
    "srs": OrderEntry(
        SequencedReplacement, "SRS", "sequenced replacement: a random draw from a pool, an orderly refill"
    ),
    "reshuffling": OrderEntry(RandomReshuffling, "reshuffling", "a new permutation of all samples in every epoch"),
    "replacement": OrderEntry(
        BatchedReplacement, "replacement", "distinct samples at every step, all put back after it"
    ),
    "independent": OrderEntry(
        IndependentDraws, "independent draws", "every sample drawn from all, independently of the others"
    ),
    "shuffle-once": OrderEntry(ShuffleOnce, "shuffle once", "one permutation, the same in every epoch"),
    "flip-flop": OrderEntry(
        FlipFlop, "flip-flop", "a new permutation in every second epoch, and its reverse in the next"
    ),
    "paired-reversal": OrderEntry(
        PairedReversal,
        "paired reversal",
        "a new permutation in every second epoch, its blocks reversed in the next",
    ),
    "block-reshuffling": OrderEntry(
        BlockReshuffling,
        "block reshuffling",
        "fixed random blocks; every epoch shuffles the blocks and the samples in each",
    ),
    "shuffle-buffer": OrderEntry(
        ShuffleBuffer, "shuffle buffer", "read in order, each sample drawn at random from a buffer of those read"
    ),
    "block-shuffle": OrderEntry(
        BlockShuffle, "block shuffle", "shards in random order, samples shuffled within a window of them"
    ),
    "jitter": OrderEntry(Jitter, "jitter", "shards in random order, every sample moved by a random distance"),
    "poisson": OrderEntry(
        PoissonDraws, "Poisson draws", "each sample is in each batch with the same chance; random batch sizes"
    ),
    "balls-in-bins": OrderEntry(
        BallsInBins, "balls in bins", "in every epoch each sample is put into a random batch; random batch sizes"
    ),
    "stratified": OrderEntry(Stratified, "stratified", "each class's share in every batch, shuffled within classes"),
    "weighted": OrderEntry(WeightedDraws, "weighted draws", "every sample drawn from all in proportion to its weight"),
    "repeated": OrderEntry(
        RepeatedAugmentation, "repeated augmentation", "every sample several times in a batch, fewer samples per epoch"
    ),
    "length-grouped": OrderEntry(
        LengthGrouped, "length-grouped", "a new permutation in every epoch, windows of it sorted by length"
    ),
}
