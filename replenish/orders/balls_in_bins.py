"""Balls in bins: once an epoch, every sample falls into one of its batches."""

from __future__ import annotations

import numpy as np

from replenish.draws import Int64Array, KeyedWords, Purpose
from replenish.orders.arrangement import stable_order
from replenish.orders.ragged import RaggedOrder


class BallsInBins(RaggedOrder):
    """In every epoch each sample falls into one of the epoch's batches, uniformly and independently of the others.

    Chua et al., "Balls-and-bins sampling for DP-SGD" (2025), also called random allocation: as in reshuffling, a sample
    comes once an epoch; as in Poisson sampling, batches have random sizes, may be empty, and say nothing about where
    another sample is, which is what privacy is amplified by. A batch is in ascending order.

    A jump to any step costs the draws of one epoch.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many a batch has on average, to within the rounding of N/B to whole steps: B.
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
        """Whether every epoch has every sample once: it does."""
        return True

    def visits(self, step: int) -> Int64Array:
        """Return for each place of the batch of `step` how often its sample was drawn before: once in every epoch."""
        return np.full(len(self.batch(step)), step // self.steps_per_epoch)

    def _block(self, words: KeyedWords) -> tuple[Int64Array, Int64Array]:
        bins = words.below(self.steps_per_epoch, self.num_samples)
        sizes = np.bincount(bins, minlength=self.steps_per_epoch)
        return stable_order(bins, self.steps_per_epoch), np.cumsum(sizes)
