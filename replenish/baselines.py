"""The orders that SRS is compared with, each with random access to any step.

`RandomReshuffling`, `ShuffleOnce` and `FlipFlop` go through all samples once an epoch; they differ in the
permutation of an epoch. `BatchedReplacement` and `IndependentDraws` know no epochs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import DistinctDraws, Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.order import Cursor, CursorOrder


class EpochOrder(CursorOrder):
    """An order in which an epoch is a permutation of the samples, cut into batches.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many make a batch, over all processes: B.
        seed: Chooses the permutations; in [0, 2**63).
        drop_last: Whether the last N mod B samples of a permutation are left out; otherwise they make a
            short batch.
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False) -> None:
        super().__init__(num_samples, batch_size, seed)
        self.drop_last = checks.boolean("drop_last", drop_last)
        if self.drop_last and self.batch_size > self.num_samples:
            raise ValueError(
                f"batch_size should be at most num_samples with drop_last=True, since every batch would be "
                f"dropped, but got batch_size={self.batch_size} and num_samples={self.num_samples}"
            )

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has: num_samples / batch_size, rounded down with `drop_last`, else up."""
        return self.num_samples // self.batch_size if self.drop_last else super().steps_per_epoch

    @property
    def last_batch_size(self) -> int:
        """How many samples the last batch of an epoch has."""
        return min(self.batch_size, self.num_samples - (self.steps_per_epoch - 1) * self.batch_size)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "drop_last": self.drop_last}

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that name the order completely."""
        return {**super().config(), "drop_last": int(self.drop_last)}

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _Epochs(self)

    @abstractmethod
    def _drawn(self, epoch: int) -> int:
        """Return the number of the permutation that `epoch` uses; equal numbers are equal permutations."""

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        """Return the permutation as `epoch` goes through it."""
        return permutation


class _Epochs(Cursor):
    """The permutation of the current epoch."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, Purpose.EPOCH)
        self._steps_at_once = steps_per_block(order.num_samples, order.batch_size)
        self._number = -1
        self._permutation: Int64Array = np.empty(0, dtype=np.int64)

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, rows): full batches of the epoch of `step`, or its short last one."""
        order, size = self._order, self._order.batch_size
        epoch, place = divmod(step, order.steps_per_epoch)
        if (number := order._drawn(epoch)) != self._number:
            self._permutation = self._words.at(number).permutations(1, order.num_samples)[0]
            self._number = number
        samples = order._arranged(self._permutation, epoch)
        full = order.num_samples // size
        # Copies: what is yielded is the caller's to write to, and the permutation may serve another epoch.
        if place == full:
            return step, samples[full * size :].reshape(1, -1).copy()
        first = place - place % self._steps_at_once
        last = min(full, first + self._steps_at_once)
        rows = samples[first * size : last * size].reshape(last - first, size).copy()
        return epoch * order.steps_per_epoch + first, rows


class RandomReshuffling(EpochOrder):
    """Training over epochs: every epoch goes through all samples in a new uniform permutation.

    This is what `DataLoader(shuffle=True)` does and what the paper calls non-replacement sampling (section
    2, equations 1 and 2). The permutation of an epoch depends on the seed and the epoch alone.

    Example:
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(index for batch in order.batches(0, order.steps_per_epoch) for index in batch.tolist())
        [0, 1, 2, 3, 4]
    """

    def _drawn(self, epoch: int) -> int:
        return epoch


class ShuffleOnce(EpochOrder):
    """One uniform permutation, drawn from the seed and used again in every epoch.

    With `drop_last` the same N mod B samples are left out for ever.

    Example:
        >>> order = ShuffleOnce(num_samples=6, batch_size=2)
        >>> order.batch(0).tolist() == order.batch(3).tolist()
        True
    """

    def _drawn(self, epoch: int) -> int:
        return 0


class FlipFlop(EpochOrder):
    """A new uniform permutation in every second epoch, and its reverse in the epoch after it.

    Rajput, Lee and Papailiopoulos, "Permutation-based SGD: is random optimal?" (2021), with random
    reshuffling as the scheme that is flipped.

    Example:
        >>> order = FlipFlop(num_samples=4, batch_size=2)
        >>> forth, back = order.batch(0).tolist(), order.batch(3).tolist()
        >>> back == forth[::-1]
        True
    """

    def _drawn(self, epoch: int) -> int:
        return epoch // 2

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        return permutation[::-1] if epoch % 2 else permutation


class BatchedReplacement(CursorOrder):
    """Every step draws distinct samples, uniformly, and puts them all back before the next.

    This is what the paper means by replacement sampling (section 2, equation 3): C(N, B) configurations at
    every step.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many distinct ones a step draws, at most N: B.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> len(set(BatchedReplacement(num_samples=5, batch_size=5).batch(7).tolist()))
        5
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed)
        if self.batch_size > self.num_samples:
            raise ValueError(
                f"batch_size should be at most num_samples, since the samples of a batch are distinct, but got "
                f"batch_size={self.batch_size} and num_samples={self.num_samples}"
            )

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _Blocks(DistinctDraws(self.num_samples, self.batch_size, self.seed))


class IndependentDraws(CursorOrder):
    """Every sample of every batch is drawn uniformly from all, independently: conventional replacement.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many draws a step makes: B; it may be more than N.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> IndependentDraws(num_samples=3, batch_size=8).batch(0).shape
        (8,)
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed)

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _Blocks(_Independent(self))


class _Independent:
    """Blocks of independent draws."""

    def __init__(self, order: IndependentDraws) -> None:
        self._num_samples = order.num_samples
        self.steps_per_block = steps_per_block(order.num_samples, order.batch_size)
        self._shape = (self.steps_per_block, order.batch_size)
        self._words = KeyedWords(order.seed, Purpose.INDEPENDENT)

    def block(self, index: int) -> Int64Array:
        values = self._words.at(index).below(self._num_samples, self._shape[0] * self._shape[1])
        return values.reshape(self._shape).astype(np.int64)


class _Blocks(Cursor):
    """Blocks of draws that are the samples themselves: nothing to remember."""

    def __init__(self, draws: DistinctDraws | _Independent) -> None:
        self._draws = draws

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        index = step // self._draws.steps_per_block
        return index * self._draws.steps_per_block, self._draws.block(index)
