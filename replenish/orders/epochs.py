"""Orders that go through all samples once per epoch: reshuffling and its relatives, which differ in the permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.orders import computed as computing
from replenish.orders.arrangement import permutation, shuffle_stretches
from replenish.orders.cursor import Cursor, CursorOrder
from replenish.orders.shards import Shards


class EpochOrder(CursorOrder):
    """An order in which an epoch is a permutation of the samples, cut into batches; see `RandomReshuffling`."""

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self.drop_last = checks.boolean("drop_last", drop_last)
        if self.drop_last:
            self._refuse_batches_larger_than_the_data(" with drop_last=True, since every batch would be dropped")

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has: num_samples / batch_size, rounded down with `drop_last`, else up."""
        return self.num_samples // self.batch_size if self.drop_last else super().steps_per_epoch

    @property
    def last_batch_size(self) -> int:
        """How many samples the last batch of an epoch has."""
        return min(self.batch_size, self.num_samples - (self.steps_per_epoch - 1) * self.batch_size)

    @property
    def _draws_per_epoch(self) -> int:
        return (self.steps_per_epoch - 1) * self.batch_size + self.last_batch_size

    def draws_before(self, step: int) -> int:
        """Return how many samples the steps before `step` draw."""
        epoch, place = divmod(checks.step(step), self.steps_per_epoch)
        return epoch * self._draws_per_epoch + place * self.batch_size

    def _step_of_draw(self, draw: int) -> tuple[int, int]:
        epoch, rest = divmod(draw, self._draws_per_epoch)
        step, place = divmod(rest, self.batch_size)
        return epoch % 2**62 * self.steps_per_epoch + step, place

    @property
    def has_every_sample_once(self) -> bool:
        """Whether every epoch has every sample once: none is dropped."""
        return self.num_samples <= self.steps_per_epoch * self.batch_size

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _EpochCursor(self)

    def visits(self, step: int) -> Int64Array:
        """Return how often the sample at each place of the batch of `step` was drawn before: once per epoch."""
        if not self.has_every_sample_once:
            return super().visits(step)
        epoch, place = divmod(checks.step(step), self.steps_per_epoch)
        return np.full(self.last_batch_size if place == self.steps_per_epoch - 1 else self.batch_size, epoch)

    def _permutation_number(self, epoch: int) -> int:
        """Return the number of the permutation that `epoch` uses: here its own, so that every epoch has a new one."""
        return epoch

    def _permutation(self, words: KeyedWords) -> Int64Array:
        """Return the permutation drawn from the words of its number: here a uniform one."""
        return permutation(words, self.num_samples)

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        """Return the permutation in the order in which `epoch` goes through it."""
        return permutation


class _EpochCursor(Cursor):
    """The permutation of the current epoch."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, Purpose.EPOCH)
        self._steps_at_once = steps_per_block(order.num_samples, order.batch_size)
        # The permutation drawn last and its number: one pair, so that an interrupt cannot separate them.
        self._current: tuple[int, Int64Array] = (-1, np.empty(0, dtype=np.int64))
        self._arranged = self._current  # an epoch, and the permutation in the order of this epoch

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, rows): full batches of the epoch of `step`, or its short last one."""
        order, size = self._order, self._order.batch_size
        epoch, place = divmod(step, order.steps_per_epoch)
        full = order.num_samples // size
        if place == full:
            return step, self._samples(epoch, full * size, order.num_samples).reshape(1, -1)
        first = place - place % self._steps_at_once
        last = min(full, first + self._steps_at_once)
        rows = self._samples(epoch, first * size, last * size).reshape(last - first, size)
        return epoch * order.steps_per_epoch + first, rows

    def _samples(self, epoch: int, start: int, stop: int) -> Int64Array:
        """Return the samples at places `start` to `stop` of an epoch, in memory that the caller may write to."""
        order = self._order
        if (number := order._permutation_number(epoch)) != self._current[0]:
            self._current = self._arranged = (-1, np.empty(0, dtype=np.int64))  # free the old one before drawing
            self._current = (number, order._permutation(self._words.at(number)))
        if epoch != self._arranged[0]:
            self._arranged = (epoch, order._arranged(self._current[1], epoch))
        return self._arranged[1][start:stop].copy()  # another epoch may use the permutation


class RandomReshuffling(EpochOrder):
    """Training over epochs: every epoch goes through all samples in a new uniform permutation.

    This is what `DataLoader(shuffle=True)` does and what the paper calls non-replacement sampling (section
    2, equations 1 and 2). The permutation of an epoch depends only on the seed and the epoch. With the same seed,
    epoch 0 has the permutation of `ShuffleOnce`, and epoch e that of `FlipFlop`'s epoch 2e.

    By default an epoch's permutation is stored in 8 bytes per sample, and a jump to another epoch sorts N random words.
    With `computed=True` each index is computed from its place, which takes a few kilobytes for any N up to 2**62 and
    reaches any step at once. This is another stream of random numbers, `"computed-v1"`, with other permutations. Up to
    4096 samples, each is exactly uniform. Above, each is a keyed bijection (`ComputedPermutations`), which tests of
    uniformity do not distinguish from a uniform permutation.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many make a batch, over all processes: B.
        seed: Chooses the permutations; in [0, 2**63).
        drop_last: Whether the last N mod B samples of an epoch are left out; otherwise they make a short batch.
        computed: Whether permutations are computed rather than stored.

    Example:
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(index for batch in order.batches(0, order.steps_per_epoch) for index in batch.tolist())
        [0, 1, 2, 3, 4]
        >>> RandomReshuffling(num_samples=10**18, batch_size=4, computed=True).batch(10**15).shape
        (4,)
    """

    def __init__(
        self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False, computed: bool = False
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self.computed = checks.boolean("computed", computed)

    def _arguments(self) -> dict[str, Any]:
        # Configs and states from before this argument existed do not have it, so False is left out.
        arguments = super()._arguments()
        return arguments if self.computed else {name: arguments[name] for name in arguments if name != "computed"}

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely, including the stream of random numbers."""
        named = super().config()
        return {**named, "stream": computing.STREAM} if self.computed else named

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _ComputedCursor(self) if self.computed else super().cursor()


class _ComputedCursor(_EpochCursor):
    """The permutations of the epochs, computed place by place."""

    def __init__(self, order: RandomReshuffling) -> None:
        super().__init__(order)
        self._rounds = computing.Rounds(order.num_samples, order.seed)

    def _samples(self, epoch: int, start: int, stop: int) -> Int64Array:
        return self._rounds.of_round(epoch, start, stop - start).copy()


class ShuffleOnce(EpochOrder):
    """One uniform permutation, drawn from the seed and used in every epoch.

    It is the first permutation of `RandomReshuffling` and of `FlipFlop` with the same seed. With `drop_last` the same
    N mod B samples are never drawn.

    Example:
        >>> order = ShuffleOnce(num_samples=6, batch_size=2)
        >>> order.batch(0).tolist() == order.batch(3).tolist()
        True
    """

    def _permutation_number(self, epoch: int) -> int:
        return 0


class FlipFlop(EpochOrder):
    """A new uniform permutation in every second epoch, and its reverse in the epoch after it.

    Rajput, Lee and Papailiopoulos, "Permutation-based SGD: is random optimal?" (2021), with random
    reshuffling as the scheme that is flipped. With the same seed, epoch 2e has the permutation of `RandomReshuffling`'s
    epoch e.

    Example:
        >>> order = FlipFlop(num_samples=4, batch_size=2)
        >>> forth, back = order.batch(0).tolist(), order.batch(3).tolist()
        >>> back == forth[::-1]
        True
    """

    def _permutation_number(self, epoch: int) -> int:
        return epoch // 2

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        return permutation[::-1] if epoch % 2 else permutation


class PairedReversal(EpochOrder):
    """A new uniform permutation in every second epoch. The epoch after it goes through each of its blocks backwards.

    One block of all samples is `FlipFlop`. Smaller blocks reverse the order only locally, so that the two visits of a
    sample are one epoch apart, to within a block. Nguyen, Phan and Kalagnanam, "Learning to shuffle: block
    reshuffling and reversal schemes" (2026), name the reversal; their adaptive choice of blocks is not implemented.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        block_size: How many places make a block; the last may have fewer. None means all, which is `FlipFlop`.

    Example:
        >>> order = PairedReversal(num_samples=8, batch_size=4, block_size=4)
        >>> forth, back = order.batch(0).tolist(), order.batch(2).tolist()
        >>> back == forth[::-1]
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
            block_size = self.num_samples
        self.block_size = checks.integer("block_size", block_size, minimum=1, maximum=2**62)

    def _permutation_number(self, epoch: int) -> int:
        return epoch // 2

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        if epoch % 2 == 0:
            return permutation
        whole = self.num_samples - self.num_samples % self.block_size
        blocks = permutation[:whole].reshape(-1, self.block_size)[:, ::-1]
        return np.concatenate([blocks.ravel(), permutation[whole:][::-1]])


class BlockReshuffling(EpochOrder):
    """Samples are divided into blocks once, at random. Every epoch shuffles the blocks, and the samples in each block.

    It lies between `ShuffleOnce`, whose batches never change, and `RandomReshuffling`, whose batches are new in every
    epoch: the samples of a block always come together. Nguyen, Phan and Kalagnanam, "Learning to shuffle: block
    reshuffling and reversal schemes" (2026), name the scheme; their adaptive choice of blocks is not implemented.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        block_size: How many samples make a block; the last may have fewer. None means ten batches.

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
        # The blocks are drawn again in every epoch: that is half of the cost, but an unused order takes no memory.
        divided = permutation(KeyedWords(self.seed, Purpose.SEQUENCE).at(self.num_samples), self.num_samples)
        places, sizes = self._blocks_of_places.in_random_order(words)
        samples = divided[places]
        shuffle_stretches(words, samples, sizes.tolist())
        return samples
