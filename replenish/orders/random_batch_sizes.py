"""Orders whose batches have random sizes: Poisson sampling, balls in bins."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords, Purpose, UInt64Array, steps_per_block
from replenish.locks import kept_property
from replenish.orders.arrangement import stable_order
from replenish.orders.cursor import Cursor, CursorOrder


class RaggedOrder(CursorOrder):
    """An order whose batches have random sizes, possibly 0; `batch_size` is their mean.

    Several processes cannot have equal shares of a batch, so samplers accept such an order on one process only.
    """

    batch_sizes_vary = True
    _shaped_by_its_batches = "its batches have random sizes"
    purpose: ClassVar[Purpose]

    @property
    def _steps_per_block(self) -> int:
        """The number of steps that are drawn together: here an epoch."""
        return self.steps_per_epoch

    @abstractmethod
    def _block(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        """Return (samples, ends): the batches of a block, one after the other, and where each one ends."""

    def draws_before(self, step: int) -> int:
        """Raise an error: the size of a batch is random."""
        raise ValueError(f"order should have batches of one size, but those of {type(self).__name__} have random sizes")

    def cursor(self) -> Cursor:
        """Return a new cursor at the start. It returns one step at a time, since batches differ in size."""
        return _RaggedCursor(self)


class _RaggedCursor(Cursor):
    """The block of the current step."""

    def __init__(self, order: RaggedOrder) -> None:
        self._order, self._steps = order, order._steps_per_block
        self._words = KeyedWords(order.seed, order.purpose)
        # A block and its number: one tuple, so that an interrupt cannot separate them.
        self._block: tuple[int, Int64Array, list[int]] = (-1, np.empty(0, dtype=np.int64), [0])

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (step, its batch as the only row)."""
        index, place = divmod(step, self._steps)
        if index != self._block[0]:
            samples, ends = self._order._block(self._words.at(index))
            self._block = (index, samples, [0, *ends.tolist()])
        _, samples, bounds = self._block
        return step, samples[bounds[place] : bounds[place + 1]].reshape(1, -1)


class PoissonDraws(RaggedOrder):
    """At every step each sample is in the batch with probability batch_size / num_samples, independently of all others.

    The analyses of differentially private SGD assume this sampling (Abadi et al., "Deep learning with differential
    privacy", 2016), and Opacus' `UniformWithReplacementSampler` has the same distribution. Batches have random sizes
    and may be empty. Here the size of a batch is drawn first, from the binomial distribution, and then that many
    distinct samples. This costs O(batch_size) per step instead of O(num_samples). A batch is in ascending order.

    Any step costs the draws of its block, about 16,000.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many samples a batch has on average, at most N: B. The sampling rate is B/N.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> order = PoissonDraws(num_samples=1000, batch_size=3, seed=1)
        >>> [len(batch) for batch in order.batches(0, 8)]
        [3, 3, 2, 1, 3, 2, 1, 2]
    """

    purpose = Purpose.POISSON

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        checks.integer("num_samples", num_samples, minimum=1, maximum=2**48)  # packed with a step into 63 bits
        self._refuse_batches_larger_than_the_data(", since a batch has a sample at most once")

    @property
    def _steps_per_block(self) -> int:
        return steps_per_block(self.num_samples, self.batch_size)

    @kept_property
    def _limits(self) -> tuple[int, UInt64Array]:
        return binomial_limits(self.num_samples, self.batch_size)

    def _block(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        steps, (least, limits) = self._steps_per_block, self._limits
        sizes = least + np.searchsorted(limits, words.words(steps), side="right")
        if 2 * self.batch_size <= self.num_samples:
            return self._subsets(words, sizes), np.cumsum(sizes)
        # Above half of the samples, it is cheaper to draw the samples that are left out.
        left_out = self._subsets(words, self.num_samples - sizes)
        kept = np.ones((steps, self.num_samples), dtype=np.bool_)
        kept[np.repeat(np.arange(steps), self.num_samples - sizes), left_out] = False
        return np.nonzero(kept)[1], np.cumsum(sizes)

    def _subsets(self, words: KeyedWords, sizes: Int64Array) -> Int64Array:
        """Return a uniform set of the given size for every step, each in ascending order, one after the other.

        A sample that is drawn twice for a step is drawn again until it is new. The procedure depends only on which
        entries are equal, so renaming the samples renames its result: all sets of a size are equally likely.
        """
        bits = max(1, (self.num_samples - 1).bit_length())
        steps = np.arange(len(sizes)) << bits
        chosen = _distinct(np.repeat(steps, sizes) + words.below(self.num_samples, int(sizes.sum())))
        while len(chosen) < sizes.sum():
            missing = np.repeat(steps, sizes - np.bincount(chosen >> bits, minlength=len(sizes)))
            drawn = _distinct(missing + words.below(self.num_samples, missing.size))
            places = np.searchsorted(chosen, drawn)
            new = chosen[np.minimum(places, len(chosen) - 1)] != drawn
            chosen = np.insert(chosen, places[new], drawn[new])
        return chosen & ((1 << bits) - 1)


def _distinct(values: Int64Array) -> Int64Array:
    """Return the distinct values in ascending order."""
    values.sort()
    first = np.ones(len(values), dtype=np.bool_)
    first[1:] = values[1:] != values[:-1]
    return values[first]


def binomial_limits(num_samples: int, batch_size: int) -> tuple[int, UInt64Array]:
    """Return (least, limits): a uniform 64-bit word w gives the size least + (the number of limits that are at most w).

    The limits are the distribution function of Binomial(num_samples, batch_size / num_samples) in units of 2**-64,
    computed in whole numbers, so that they are the same on every machine. The sizes in a tail whose total probability
    is less than one unit never occur.

    Example:
        >>> least, limits = binomial_limits(2, 1)
        >>> least, [int(limit) / 2**64 for limit in limits]
        (0, [0.25, 0.75])
    """
    if batch_size == num_samples:
        return num_samples, np.empty(0, dtype=np.uint64)
    mode, odds, against = batch_size, batch_size, num_samples - batch_size
    largest = 1 << 256
    smallest = largest >> 100  # fewer than 2**30 sizes have more weight
    down, up = [], []
    size, weight = mode, largest
    while size > 0 and weight >= smallest:
        weight = weight * size * against // ((num_samples - size + 1) * odds)
        down.append(weight)
        size -= 1
    size, weight = mode, largest
    while size < num_samples and weight >= smallest:
        weight = weight * (num_samples - size) * odds // ((size + 1) * against)
        up.append(weight)
        size += 1
    weights = [*reversed(down), largest, *up]
    total, reached, limits = sum(weights), 0, []
    for weight in weights[:-1]:
        reached += weight
        limits.append(min((reached << 64) // total, 2**64 - 1))
    return mode - len(down), np.array(limits, dtype=np.uint64)


class BallsInBins(RaggedOrder):
    """In every epoch each sample falls into one of the epoch's batches, uniformly and independently of the others.

    Chua et al., "Balls-and-bins sampling for DP-SGD" (2025), also called random allocation. As in reshuffling, a sample
    is drawn once per epoch. As in Poisson sampling, batches have random sizes and may be empty, and the batch of one
    sample does not depend on the others, which amplifies privacy. A batch is in ascending order.

    A jump to any step costs the draws of one epoch.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many samples a batch has on average, to within the rounding of N/B to whole steps: B.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> order = BallsInBins(num_samples=12, batch_size=4)
        >>> batches = [batch.tolist() for batch in order.batches(0, order.steps_per_epoch)]
        >>> sorted(sum(batches, [])) == list(range(12))
        True
    """

    purpose = Purpose.BINS

    @property
    def has_every_sample_once(self) -> bool:
        """Whether every epoch has every sample once: here always."""
        return True

    def visits(self, step: int) -> Int64Array:
        """Return for each place of the batch of `step` how often its sample was drawn before: once per epoch."""
        return np.full(len(self.batch(step)), step // self.steps_per_epoch)

    def _block(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        bins = words.below(self.steps_per_epoch, self.num_samples)
        sizes = np.bincount(bins, minlength=self.steps_per_epoch)
        return stable_order(bins, self.steps_per_epoch), np.cumsum(sizes)
