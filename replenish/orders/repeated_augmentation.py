"""Repeated augmentation: every sample several times per batch."""

from __future__ import annotations

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.epochs import EpochOrder


class RepeatedAugmentation(EpochOrder):
    """Every epoch goes through the head of a new permutation, and draws each sample `repeats` times, for augmentation.

    Hoffer et al., "Augment your batch" (2020), and Berman et al., "MultiGrain" (2019), as in DeiT's `RASampler` and
    torchvision's reference scripts. An epoch has num_samples draws like any other, so it has only one in `repeats`
    samples. All copies of a sample are in one batch, except at the edges of a batch. A batch has first all first
    copies, then all second copies, and so on, so that processes with equal shares of it get different copies.

    A jump to any step costs the draws of one epoch.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`; a batch counts draws.
        repeats: How often a sample is drawn in a row, at most N; DeiT's default is 3.

    Example:
        >>> order = RepeatedAugmentation(num_samples=12, batch_size=6, repeats=3)
        >>> first, second, third = order.batch(0).reshape(3, 2).tolist()
        >>> first == second == third
        True
    """

    _shaped_by_its_batches = "each batch has several copies of a sample"

    def __init__(
        self, num_samples: int, batch_size: int, *, seed: int = 0, repeats: int = 3, drop_last: bool = False
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self.repeats = checks.integer("repeats", repeats, minimum=1, maximum=self.num_samples)

    @property
    def has_every_sample_once(self) -> bool:
        """Whether every epoch has every sample once: not if samples are repeated."""
        return self.repeats == 1 and super().has_every_sample_once

    def _permutation(self, words: KeyedWords) -> Int64Array:
        samples = super()._permutation(words)
        full, rest = divmod(self.num_samples, self.batch_size)
        # The copy with which a batch begins determines the copy of each of its draws.
        first = np.arange(full) * self.batch_size
        copies, which = np.unique(first % self.repeats, return_inverse=True)
        by_copy = [_by_copy(copy, self.batch_size, self.repeats) for copy in copies.tolist()]
        draws = (np.array(by_copy, dtype=np.int64).reshape(-1, self.batch_size)[which] + first[:, np.newaxis]).ravel()
        last = full * self.batch_size + _by_copy(full * self.batch_size % self.repeats, rest, self.repeats)
        return samples[np.concatenate([draws, last]) // self.repeats]


def _by_copy(first: int, size: int, repeats: int) -> Int64Array:
    """Return the places of a batch that begins with copy number `first`, sorted by copy number."""
    return np.argsort((first + np.arange(size)) % repeats, kind="stable")
