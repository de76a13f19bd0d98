"""The orders by the names that users type: the one list that configs, commands, tests and docs read."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from replenish import checks
from replenish.orders.balls_in_bins import BallsInBins
from replenish.orders.batched_replacement import BatchedReplacement
from replenish.orders.block_reshuffling import BlockReshuffling
from replenish.orders.block_shuffle import BlockShuffle
from replenish.orders.cursor import CursorOrder
from replenish.orders.flip_flop import FlipFlop
from replenish.orders.independent_draws import IndependentDraws
from replenish.orders.jitter import Jitter
from replenish.orders.length_grouped import LengthGrouped
from replenish.orders.paired_reversal import PairedReversal
from replenish.orders.poisson_draws import PoissonDraws
from replenish.orders.ragged import RaggedOrder
from replenish.orders.random_reshuffling import RandomReshuffling
from replenish.orders.repeated_augmentation import RepeatedAugmentation
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.shuffle_buffer import ShuffleBuffer
from replenish.orders.shuffle_once import ShuffleOnce
from replenish.orders.stratified import Stratified
from replenish.orders.weighted_draws import WeightedDraws

_SHARED = ("num_samples", "batch_size", "seed")


@dataclass(frozen=True)
class OrderEntry:
    """One order of the list.

    Attributes:
        order_class: The class.
        label: Its name for people, as tables and charts print it.
        description: What it does, in a line.
    """

    order_class: type[CursorOrder]
    label: str
    description: str

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its arguments beyond the sizes and the seed, which all orders take."""
        names = inspect.signature(self.order_class).parameters
        return tuple(name for name in names if name not in _SHARED)

    @property
    def needs(self) -> tuple[str, ...]:
        """Those of its options without which it cannot be built, since they are facts about the data."""
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
        "blocks drawn once, which every epoch shuffles, and the samples of each",
    ),
    "shuffle-buffer": OrderEntry(
        ShuffleBuffer, "shuffle buffer", "read in order, each sample drawn at random from a buffer of those read"
    ),
    "block-shuffle": OrderEntry(
        BlockShuffle, "block shuffle", "shards in random order, samples shuffled within a window of them"
    ),
    "jitter": OrderEntry(Jitter, "jitter", "shards in random order, every sample moved by a random distance"),
    "poisson": OrderEntry(PoissonDraws, "Poisson draws", "each sample at each step by a coin; random batch sizes"),
    "balls-in-bins": OrderEntry(
        BallsInBins, "balls in bins", "once an epoch each sample falls into one of its batches; random batch sizes"
    ),
    "stratified": OrderEntry(Stratified, "stratified", "each class's share in every batch, shuffled within classes"),
    "weighted": OrderEntry(WeightedDraws, "weighted draws", "every sample drawn from all in proportion to its weight"),
    "repeated": OrderEntry(
        RepeatedAugmentation, "repeated augmentation", "every sample several times in a batch, fewer samples an epoch"
    ),
    "length-grouped": OrderEntry(
        LengthGrouped, "length-grouped", "a new permutation in every epoch, windows of it sorted by length"
    ),
}


def is_file(name: object) -> bool:
    """Return whether the name of an order is the path of a config file."""
    return isinstance(name, str) and name.endswith(".json")


def build_order(name: str, num_samples: int, batch_size: int, *, seed: int = 0, **options: Any) -> CursorOrder:
    """Return the order that `name` stands for in `ORDERS`.

    Args:
        name: One of the names of `ORDERS`.
        num_samples: How many samples there are.
        batch_size: How many a step draws, over all processes.
        seed: Chooses the draws.
        **options: Arguments that not all orders have; one that this order does not have is an error.

    A name that ends in ".json" is the path of a config file, such as a mixture's; see `order_of_file`.

    Example:
        >>> build_order("reshuffling", 10, 4, drop_last=True).steps_per_epoch
        2
    """
    if is_file(name):
        from replenish.orders.rebuilding import order_of_file

        return order_of_file(name, num_samples, batch_size, seed=seed, **options)
    entry = ORDERS[checks.one_of("order", name, ORDERS)]
    if unknown := [option for option in options if option not in entry.options]:
        known = f"only {', '.join(entry.options)}" if entry.options else "none"
        raise ValueError(
            f"{unknown[0]} should not be given for the order {name!r}, which has {known} of such options, but got "
            f"{unknown[0]}={options[unknown[0]]!r}"
        )
    if missing := [need for need in entry.needs if options.get(need) is None]:
        raise ValueError(
            f"{missing[0]} should be given for the order {name!r}, which needs {' and '.join(entry.needs)} of the "
            f"data, but got none"
        )
    return entry.order_class(num_samples, batch_size, seed=seed, **options)
