"""Shuffle once: the same permutation in every epoch."""

from __future__ import annotations

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
