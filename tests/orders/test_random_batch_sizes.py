"""Poisson sampling and balls in bins: their laws, and how frameworks take batches of random sizes."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils.data import DataLoader

from replenish import BallsInBins, PoissonDraws
from replenish.orders.random_batch_sizes import binomial_limits
from replenish.torch import OrderBatchSampler


@pytest.mark.parametrize(("samples", "size"), [(2, 1), (10, 3), (10, 9), (1000, 10), (50_000, 64), (10**9, 65_536)])
def test_binomial_limits(samples: int, size: int) -> None:
    least, limits = binomial_limits(samples, size)
    sizes = least + np.arange(len(limits))
    found = np.array([int(limit) / 2**64 for limit in limits])
    law = stats.binom(samples, size / samples)
    assert found == pytest.approx(law.cdf(sizes), rel=1e-9, abs=1e-15)
    assert law.cdf(least - 1) < 2**-64
    assert law.sf(least + len(limits)) < 2**-64


def test_binomial_limits_are_exact() -> None:
    least, limits = binomial_limits(6, 2)
    weights = [comb(6, k) * 2**k * 4 ** (6 - k) for k in range(7)]
    assert least == 0
    assert limits.tolist() == [(sum(weights[: k + 1]) << 64) // 6**6 for k in range(6)]


@pytest.mark.parametrize(("samples", "size"), [(4, 1), (4, 2), (4, 3)])
def test_every_subset_comes_as_often_as_its_coins_say(samples: int, size: int) -> None:
    steps = 40_000
    batches = [tuple(batch.tolist()) for batch in PoissonDraws(samples, size, seed=2).batches(0, steps)]
    subsets = [subset for k in range(samples + 1) for subset in itertools.combinations(range(samples), k)]
    rate = size / samples
    expected = [steps * rate ** len(s) * (1 - rate) ** (samples - len(s)) for s in subsets]
    assert stats.chisquare([batches.count(subset) for subset in subsets], expected).pvalue > 1e-6


def test_balls_fall_once_an_epoch_and_evenly() -> None:
    order = BallsInBins(60, 4, seed=3)
    bins = np.zeros((15, 60), dtype=np.int64)
    pairs = 0
    epochs = 2_000
    for number in range(epochs):
        batches = list(order.batches(15 * number, 15 * number + 15))
        assert sorted(np.concatenate(batches).tolist()) == list(range(60))
        for place, batch in enumerate(batches):
            assert (np.diff(batch) > 0).all()
            bins[place, batch] += 1
        pairs += sum(len(batch) * (len(batch) - 1) // 2 for batch in batches)
    assert stats.chisquare(bins.ravel()).pvalue > 1e-6
    # Two samples meet with probability 1/15, independently for each pair of samples.
    mean = epochs * 60 * 59 / 2 / 15
    assert abs(pairs - mean) < 5 * np.sqrt(mean * 14 / 15)


@pytest.mark.parametrize("cls", [PoissonDraws, BallsInBins])
def test_a_loader_takes_them(cls: type[PoissonDraws] | type[BallsInBins]) -> None:
    order = cls(50, 1, seed=1)
    # The default collate_fn fails on nothing at all; whoever trains so says what an empty batch is.
    loader = DataLoader(
        range(50),
        batch_sampler=OrderBatchSampler(order),
        collate_fn=lambda items: torch.tensor(items, dtype=torch.int64),
    )
    assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in order.batches(0, 50)]
    assert 0 in [len(batch) for batch in loader]


@pytest.mark.parametrize("cls", [PoissonDraws, BallsInBins])
def test_several_processes_are_refused(cls: type[PoissonDraws] | type[BallsInBins]) -> None:
    with pytest.raises(ValueError, match="num_replicas should be 1 for .*, whose batches have random sizes"):
        OrderBatchSampler(cls(50, 10), num_replicas=2, rank=0)


def test_poisson_needs_no_more_than_all() -> None:
    assert PoissonDraws(7, 7).batch(3).tolist() == list(range(7))
    with pytest.raises(ValueError, match="batch_size=8 and num_samples=7"):
        PoissonDraws(7, 8)
