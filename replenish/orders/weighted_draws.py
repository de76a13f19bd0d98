"""Weighted draws: every sample drawn from all in proportion to its weight, and put back at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array, Purpose
from replenish.locks import kept_property
from replenish.orders import per_sample
from replenish.orders.blocks import BlockOrder

_TOTAL = 2**61 - 2**41  # of all weights, to within 2**40: just under 2**61, so that hardly a word is rejected


class WeightedDraws(BlockOrder):
    """Every sample of every batch is drawn with probability proportional to its weight, independently of all others.

    The law of torch's `WeightedRandomSampler` with replacement, without its limit of 2**24 samples and the same on
    any number of processes. A random word falls into one of the stretches that the weights, as whole numbers, make on
    a line of 2**61 points; a guide table leads next to the right one, so that a draw costs the same for any weights.
    A positive weight keeps at least one point. Where exact frequencies are wanted rather than independent draws, see
    `weighted_sequence`.

    Any step costs the draws of its block, some 16,000. The tables take 16 bytes a sample, and are made once.

    Args:
        num_samples, batch_size, seed: As of `IndependentDraws`.
        weights: One non-negative, finite weight per sample, at least one of them positive.

    Example:
        >>> order = WeightedDraws(num_samples=3, batch_size=8, weights=[0, 1, 3])
        >>> order.batch(0).tolist()
        [2, 2, 2, 2, 1, 2, 2, 2]
    """

    purpose = Purpose.WEIGHTED

    def __init__(self, num_samples: int, batch_size: int, *, weights: npt.ArrayLike, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self.weights = per_sample.weights("weights", weights, self.num_samples)

    @kept_property
    def _tables(self) -> tuple[Int64Array, int, Int64Array]:
        """Where the stretches end; how many points, in bits, are between two posts; the stretch of each post."""
        ends = np.cumsum(on_a_line(self.weights))
        shift = max(0, 61 - (self.num_samples - 1).bit_length())
        posts = np.arange((int(ends[-1]) >> shift) + 1) << shift
        return ends, shift, np.searchsorted(ends, posts, side="right")

    @property
    def _bound(self) -> int:
        return int(self._tables[0][-1])

    def _samples(self, draws: Int64Array) -> Int64Array:
        ends, shift, guide = self._tables
        # The stretch of the last guide post before the point, or a later one; on average the next but one has it.
        found = guide.take(draws >> shift)
        for _ in range(2):
            found += ends.take(found) <= draws
        beyond = np.flatnonzero(ends.take(found) <= draws)
        found[beyond] = np.searchsorted(ends, draws[beyond], side="right")
        return found


def on_a_line(weights: npt.NDArray[np.float64]) -> Int64Array:
    """Return the weights as whole numbers with a sum of about 2**61; positive ones are at least 1.

    Every operation is one that IEEE 754 fixes to the last bit, and sums go from left to right, so that the result is
    the same on every machine.
    """
    scaled = weights / weights.max()  # so that the sum of huge weights stays finite
    total = np.cumsum(scaled)[-1]
    lengths = np.floor(scaled / total * _TOTAL).astype(np.int64)
    lengths[(lengths == 0) & (weights > 0)] = 1
    return lengths
