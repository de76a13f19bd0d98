"""Poisson sampling, balls in bins and weighted draws: their probabilities, and batches of random sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.utils.data import DataLoader

from replenish import BallsInBins, PoissonDraws, WeightedDraws
from replenish.draws import KeyedWords, Purpose
from replenish.orders.random_batch_sizes import binomial_limits
from replenish.orders.replacement import on_a_line
from replenish.torch import OrderBatchSampler

# ---- Batches of random sizes ----


@pytest.mark.parametrize(("samples", "size"), [(2, 1), (10, 3), (10, 9), (1000, 10), (50_000, 64), (10**9, 65_536)])
def test_binomial_limits(samples: int, size: int) -> None:
    least, limits = binomial_limits(samples, size)
    sizes = least + np.arange(len(limits))
    found = np.array([int(limit) / 2**64 for limit in limits])
    law = stats.binom(samples, size / samples)
    assert found == pytest.approx(law.cdf(sizes), rel=1e-9, abs=1e-15)
    assert law.cdf(least - 1) < 2**-64
    assert law.sf(least + len(limits)) < 2**-64


@pytest.mark.parametrize(("samples", "size"), [(4, 1), (4, 2), (4, 3)])
def test_every_subset_has_its_probability(samples: int, size: int) -> None:
    steps = 40_000
    batches = [tuple(batch.tolist()) for batch in PoissonDraws(samples, size, seed=2).batches(0, steps)]
    subsets = [subset for k in range(samples + 1) for subset in itertools.combinations(range(samples), k)]
    rate = size / samples
    expected = [steps * rate ** len(s) * (1 - rate) ** (samples - len(s)) for s in subsets]
    assert stats.chisquare([batches.count(subset) for subset in subsets], expected).pvalue > 1e-6


def test_balls_fall_once_per_epoch_and_evenly() -> None:
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
    # Each pair of samples shares a bin with probability 1/15. Pairs are independent of each other.
    mean = epochs * 60 * 59 / 2 / 15
    assert abs(pairs - mean) < 5 * np.sqrt(mean * 14 / 15)


@pytest.mark.parametrize("cls", [PoissonDraws, BallsInBins])
def test_a_loader_accepts_them(cls: type[PoissonDraws] | type[BallsInBins]) -> None:
    order = cls(50, 1, seed=1)
    # The default collate_fn fails on an empty batch, so the user has to define one.
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


def test_poisson_with_a_batch_of_all_samples() -> None:
    assert PoissonDraws(7, 7).batch(3).tolist() == list(range(7))
    with pytest.raises(ValueError, match="batch_size=8 and num_samples=7"):
        PoissonDraws(7, 8)


# ---- Weighted draws follow any weights ----


WEIGHTS = {
    "equal": np.ones(50),
    "rising": np.arange(50.0),
    "steep": 2.0 ** -np.arange(50),  # stretches far shorter and far longer than a cell of the search table
    "one": np.eye(50)[17],
    "huge": np.full(50, 1e308),
    "integers": np.arange(50, dtype=np.uint8),
}


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_frequencies_are_the_weights(name: str) -> None:
    weights = WEIGHTS[name].astype(np.float64)
    drawn = np.concatenate(list(WeightedDraws(50, 100, weights=WEIGHTS[name], seed=3).batches(0, 1_000)))
    counts = np.bincount(drawn, minlength=50)
    shares = weights / weights.max()
    expected = shares / shares.sum() * len(drawn)
    assert not counts[weights == 0].any()
    common = expected > 5
    rest = (counts[~common].sum(), expected[~common].sum())
    found, law = np.append(counts[common], rest[0]), np.append(expected[common], rest[1])
    keep = law > 1e-9
    if keep.sum() > 1:
        assert stats.chisquare(found[keep], law[keep] * found[keep].sum() / law[keep].sum()).pvalue > 1e-6


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(5e-324, 1e308)), min_size=1, max_size=40).filter(any), st.integers(0, 99)
)
def test_draws_equal_a_binary_search(weights: list[float], seed: int) -> None:
    order = WeightedDraws(len(weights), 7, weights=weights, seed=seed)
    words, ends = KeyedWords(seed, Purpose.WEIGHTED), np.cumsum(on_a_line(np.array(weights)))
    points = words.at(0).below(int(ends[-1]), 700)
    assert order._samples(points).tolist() == np.searchsorted(ends, points, side="right").tolist()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "weights should have one entry for each of the 3 samples"),
        ([1, -1, 2], "weights should be finite and not negative, but got -1 at 1"),
        ([1, np.inf, 2], "weights should be finite and not negative, but got inf at 1"),
        ([0, 0, 0], "weights should not all be zero"),
        (["a", "b", "c"], "weights should be real numbers"),
    ],
)
def test_bad_weights_are_named(weights: list[object], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        WeightedDraws(3, 2, weights=weights)  # type: ignore[arg-type]


def test_changing_the_array_of_weights_changes_no_draws() -> None:
    weights = np.ones(3)
    order = WeightedDraws(3, 50, weights=weights)
    weights[:] = [0, 0, 1]
    assert set(order.batch(0).tolist()) == {0, 1, 2}
