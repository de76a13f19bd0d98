"""The draws obey the laws of `replenish.theory`, with fixed seeds and thresholds near 1e-6."""

from __future__ import annotations

import numpy as np
import pytest

from replenish import BatchedReplacement, IndependentDraws, Order, SequencedReplacement, theory

SIGMAS = 4.9  # two-sided, about 1e-6


def counts(order: Order, start: int, stop: int) -> np.ndarray:
    drawn = np.concatenate(list(order.batches(start, stop)))
    return np.bincount(drawn, minlength=order.num_samples)


def close(values: list[float], expected: float) -> bool:
    """Return whether the mean of independent values is compatible with the expected value."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return abs(np.mean(values) - expected) < SIGMAS * error


POOLS = [(1000, 20, None), (1000, 20, 2000), (1000, 20, 300), (600, 7, 901)]


@pytest.mark.parametrize(("num_samples", "batch_size", "pool_size"), POOLS)
def test_draws_of_a_sample(num_samples: int, batch_size: int, pool_size: int | None) -> None:
    """Over seeds, counts of places in the sequence have the law's mean and variance; places are pooled by phase."""
    step, seeds = 170, 400
    seen = np.stack(
        [
            counts(
                SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size, sequence="identity"),
                0,
                step,
            )
            for seed in range(seeds)
        ]
    )
    inserted = theory.copies_inserted(num_samples, batch_size, step, pool_size=pool_size)
    assert (seen <= inserted).all()
    expected = theory.expected_draws(num_samples, batch_size, step, pool_size=pool_size)
    variance = theory.count_variance(num_samples, batch_size, step, pool_size=pool_size)
    for phase in np.array_split(np.arange(num_samples), 10):
        totals = seen[:, phase].sum(axis=1)
        assert close(totals.tolist(), expected[phase].sum())
        squares = ((seen[:, phase] - expected[phase]) ** 2).sum(axis=1)
        assert close(squares.tolist(), variance[phase].sum())


@pytest.mark.parametrize(("num_samples", "batch_size", "pool_size"), POOLS)
def test_counts_do_not_drift(num_samples: int, batch_size: int, pool_size: int | None) -> None:
    """The spread of the counts over samples is the law's, early and late."""
    for step in (100, 777):
        spreads = [
            float(counts(SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size), 0, step).var())
            for seed in range(150)
        ]
        assert close(spreads, theory.count_spread(num_samples, batch_size, step, pool_size=pool_size))


def test_unseen_in_the_first_epoch() -> None:
    for pool_size in (None, 3000, 500):
        unseen = [
            float((counts(SequencedReplacement(2000, 20, seed=seed, pool_size=pool_size), 0, 100) == 0).mean())
            for seed in range(150)
        ]
        assert close(unseen, theory.unseen_fraction(2000, 20, pool_size=pool_size))
    for kind, law in [
        (IndependentDraws, theory.unseen_fraction_independent),
        (BatchedReplacement, theory.unseen_fraction_batched),
    ]:
        unseen = [float((counts(kind(2000, 20, seed=seed), 0, 100) == 0).mean()) for seed in range(150)]
        assert close(unseen, law(2000, 20, 100))


@pytest.mark.parametrize(("pool_epochs", "tolerance"), [(1, 0.002), (2, 0.002), (0.5, 0.002)])
def test_unseen_in_a_later_epoch(pool_epochs: float, tolerance: float) -> None:
    """With M = N, 27.9 % are unseen in an epoch from a far step on. The law is a limit for small steps."""
    order = SequencedReplacement(50_000, 25, pool_size=int(50_000 * pool_epochs))
    unseen = (counts(order, 10**6, 10**6 + 2000) == 0).mean()
    assert abs(unseen - theory.limit_unseen_fraction(pool_epochs)) < SIGMAS * np.sqrt(0.2 / 50_000) + tolerance


@pytest.mark.parametrize("pool_size", [None, 1200, 200])
def test_equal_samples_in_a_batch(pool_size: int | None) -> None:
    num_samples, batch_size, step = 400, 60, 50
    pairs = []
    for seed in range(600):
        batch = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size).batch(step)
        copies = np.bincount(batch)
        pairs.append(float((copies * (copies - 1) / 2).sum()))
    assert close(pairs, theory.expected_equal_pairs(num_samples, batch_size, step, pool_size=pool_size))
    independent = [
        float((c * (c - 1) / 2).sum())
        for c in map(np.bincount, IndependentDraws(num_samples, batch_size).batches(0, 2000))
    ]
    assert close(independent, theory.equal_pairs_independent(num_samples, batch_size))
