"""Random reshuffling: training over epochs."""

from __future__ import annotations

from replenish.orders.epochs import EpochOrder


class RandomReshuffling(EpochOrder):
    """Training over epochs: every epoch goes through all samples in a new uniform permutation.

    This is what `DataLoader(shuffle=True)` does and what the paper calls non-replacement sampling (section
    2, equations 1 and 2). The permutation of an epoch depends on the seed and the epoch alone.
    At one seed, the permutation of epoch 0 is also the one of `ShuffleOnce`, and that of epoch e `FlipFlop`'s of epoch
    2e.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many make a batch, over all processes: B.
        seed: Chooses the permutations; in [0, 2**63).
        drop_last: Whether the last N mod B samples of an epoch are left out; otherwise they make a short batch.

    Example:
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(index for batch in order.batches(0, order.steps_per_epoch) for index in batch.tolist())
        [0, 1, 2, 3, 4]
    """
