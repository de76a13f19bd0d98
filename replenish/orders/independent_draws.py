"""Independent draws: every sample put back at once."""

from __future__ import annotations

from replenish.draws import Purpose
from replenish.orders.blocks import BlockOrder


class IndependentDraws(BlockOrder):
    """Every sample of every batch is drawn uniformly from all, independently: conventional replacement.

    It shares no draws with another order of the same seed.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many draws a step makes: B; it may be more than N.
        seed: Chooses the draws; in [0, 2**63).

    Example:
        >>> IndependentDraws(num_samples=3, batch_size=8).batch(0).shape
        (8,)
    """

    purpose = Purpose.INDEPENDENT

    @property
    def _bound(self) -> int:
        return self.num_samples
