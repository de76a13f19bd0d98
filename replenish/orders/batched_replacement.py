"""Batched replacement: distinct samples, all put back after the step."""

from __future__ import annotations

from replenish.draws import DistinctDraws
from replenish.orders.blocks import BlockCursor
from replenish.orders.cursor import Cursor, CursorOrder


class BatchedReplacement(CursorOrder):
    """Every step draws distinct samples, uniformly, and puts them all back before the next.

    This is what the paper means by replacement sampling (section 2, equation 3): C(N, B) configurations at
    every step. At one seed it draws, at every step, the samples whose numbers are those of the slots that
    `SequencedReplacement` with N slots draws.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many distinct ones a step draws, at most N: B.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> len(set(BatchedReplacement(num_samples=5, batch_size=5).batch(7).tolist()))
        5
    """

    _shaped_by_its_batches = "the samples of each batch are distinct"

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self._refuse_batches_larger_than_the_data(", since the samples of a batch are distinct")

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return BlockCursor(DistinctDraws(self.num_samples, self.batch_size, self.seed))
