"""Flip-flop: a permutation, then its reverse."""

from __future__ import annotations

from replenish.draws import Int64Array
from replenish.orders.epochs import EpochOrder


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
