"""The orders that a run can have, by name."""

from __future__ import annotations

from collections.abc import Callable

from replenish import (
    BatchedReplacement,
    FlipFlop,
    IndependentDraws,
    Order,
    RandomReshuffling,
    SequencedReplacement,
    ShuffleOnce,
)
from replenish.lab.config import RunConfig

BASELINES: dict[str, Callable[..., Order]] = {
    "reshuffling": RandomReshuffling,
    "replacement": BatchedReplacement,
    "independent": IndependentDraws,
    "shuffle-once": ShuffleOnce,
    "flip-flop": FlipFlop,
}


def build_order(config: RunConfig, num_samples: int) -> Order:
    """Return the order that a config names, over `num_samples` samples.

    Example:
        >>> from replenish.lab.config import RunConfig
        >>> build_order(RunConfig(order="reshuffling", seed=3), num_samples=50_000).steps_per_epoch
        782
    """
    if config.order in BASELINES:
        return BASELINES[config.order](num_samples, config.batch_size, seed=config.seed)
    return SequencedReplacement(
        num_samples, config.batch_size, seed=config.seed, pool_size=config.pool_size, sequence=config.sequence
    )
