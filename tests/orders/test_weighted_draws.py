"""Weighted draws have the law of their weights, whatever those are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from replenish import WeightedDraws
from replenish.draws import KeyedWords, Purpose
from replenish.orders.replacement import on_a_line

WEIGHTS = {
    "equal": np.ones(50),
    "rising": np.arange(50.0),
    "steep": 2.0 ** -np.arange(50),  # stretches much shorter and much longer than the guide's
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
def test_a_draw_is_found_where_a_search_finds_it(weights: list[float], seed: int) -> None:
    order = WeightedDraws(len(weights), 7, weights=weights, seed=seed)
    words, ends = KeyedWords(seed, Purpose.WEIGHTED), np.cumsum(on_a_line(np.array(weights)))
    points = words.at(0).below(int(ends[-1]), 700)
    assert order._samples(points).tolist() == np.searchsorted(ends, points, side="right").tolist()


def test_lengths_on_the_line() -> None:
    lengths = on_a_line(np.array([1.0, 0.0, 1e-30, 3.0]))
    assert lengths[1] == 0
    assert lengths[2] == 1  # positive, however small
    assert lengths[3] / lengths[0] == pytest.approx(3, rel=1e-15)
    assert 2**61 - 2**42 < lengths.sum() < 2**61


@pytest.mark.slow
def test_more_samples_than_torch_takes() -> None:
    """torch.multinomial refuses 2**24 categories and more."""
    samples = 2**24 + 2
    weights = np.zeros(samples)
    weights[[0, samples - 1]] = 1, 3
    drawn = WeightedDraws(samples, 4_000, weights=weights).batch(7)
    assert set(drawn.tolist()) == {0, samples - 1}
    assert np.mean(drawn == samples - 1) == pytest.approx(0.75, abs=5 * np.sqrt(3 / 16 / 4_000))


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


def test_the_weights_cannot_be_changed_from_outside() -> None:
    weights = np.ones(3)
    order = WeightedDraws(3, 50, weights=weights)
    weights[:] = [0, 0, 1]
    assert set(order.batch(0).tolist()) == {0, 1, 2}
