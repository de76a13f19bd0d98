"""Orders whose epochs are related: the same permutation again, or reversed."""

from __future__ import annotations

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.epochs import EpochOrder


class ShuffleOnce(EpochOrder):
    """One uniform permutation, drawn from the seed and used again in every epoch.

    It is the permutation that `RandomReshuffling` and `FlipFlop` of the same seed begin with. With `drop_last` the
    same N mod B samples are left out for ever.

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
    reshuffling as the scheme that is flipped. At one seed, epoch 2e has the permutation that epoch e of
    `RandomReshuffling` has.

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
    """A new uniform permutation in every second epoch; the epoch after it goes through each block of it backwards.

    One block of all samples is `FlipFlop`; smaller ones reverse the order locally and keep it at large, so that the two
    visits of a sample are an epoch apart, to within a block. Nguyen, Phan and Kalagnanam, "Learning to shuffle: block
    reshuffling and reversal schemes" (2026), name the reversal; their adaptive choice of blocks is not here.

    Args:
        num_samples, batch_size, seed, drop_last: As of `RandomReshuffling`.
        block_size: How many places make a block, the last one perhaps fewer; None means all, which is `FlipFlop`.

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
