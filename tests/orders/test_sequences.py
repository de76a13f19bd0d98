"""The kinds of sequence, weighted sequences, and SRS over a sequence that is reshuffled in every round."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from replenish import SequencedReplacement, weighted_sequence
from replenish.draws import DistinctDraws
from replenish.orders.sequences import (
    SORTED_UP_TO,
    TABLE_UP_TO,
    ReshuffledSequence,
    ShuffledSequence,
    make_sequence,
)

ALPHA = 1e-6


@pytest.mark.parametrize(
    "length",
    [1, 2, 3, 5, SORTED_UP_TO, SORTED_UP_TO + 1, 5000, 2**14 - 1, 2**14, 2**14 + 1, 50_000, 65_535, 65_537, 999_983],
)
def test_shuffled_is_a_permutation(length: int) -> None:
    samples = ShuffledSequence(length, seed=1).at(np.arange(length))
    assert samples.dtype == np.int64
    assert (np.bincount(samples, minlength=length) == 1).all()


@pytest.mark.slow
def test_shuffled_without_a_table_is_a_permutation() -> None:
    length = TABLE_UP_TO + 12_345
    sequence = ShuffledSequence(length, seed=1)
    assert sequence._table is None
    assert (np.bincount(sequence.at(np.arange(length, dtype=np.int32)), minlength=length) == 1).all()


def test_table_and_computation_agree() -> None:
    sequence = ShuffledSequence(50_000, seed=4)
    assert sequence._table is not None
    positions = np.random.default_rng(0).integers(0, 50_000, (30, 40))
    assert (sequence.at(positions) == sequence._compute(positions)).all()


def test_small_shuffles_are_uniform() -> None:
    index = {order: number for number, order in enumerate(permutations(range(4)))}
    drawn = [tuple(ShuffledSequence(4, seed).at(np.arange(4)).tolist()) for seed in range(6000)]
    assert stats.chisquare(np.bincount([index[order] for order in drawn], minlength=24)).pvalue > ALPHA


def test_computed_shuffles_look_random() -> None:
    """Over seeds, the place of a position is uniform, and neighbours go to unrelated places."""
    length, seeds = 5000, 4000
    placed = np.stack([ShuffledSequence(length, seed)._compute(np.array([0, 1, 2500, 4999])) for seed in range(seeds)])
    for column in placed.T:
        assert stats.chisquare(np.bincount(column * 50 // length, minlength=50)).pvalue > ALPHA
    for left, right in [(0, 1), (1, 2), (2, 3)]:
        apart = (placed[:, left] - placed[:, right]) % length
        assert stats.chisquare(np.bincount((apart * 50) // length, minlength=50)).pvalue > ALPHA


def test_one_computed_shuffle_looks_random() -> None:
    """One permutation has no serial correlation, and as many fixed points and ascents as by chance."""
    length = 200_000
    samples = ShuffledSequence(length, seed=0).at(np.arange(length)).astype(np.float64)
    for lag in (1, 2, 64, 256, 512):
        correlation = np.corrcoef(samples[:-lag], samples[lag:])[0, 1]
        assert abs(correlation) * np.sqrt(length) < 5
    assert (samples == np.arange(length)).sum() < 12  # Poisson with mean 1
    ascents = int((np.diff(samples) > 0).sum())  # mean (n-1)/2, variance (n+1)/12
    assert abs(ascents - (length - 1) / 2) < 5 * np.sqrt((length + 1) / 12)


def test_config_names_an_array_by_its_content() -> None:
    one = SequencedReplacement(10, 2, sequence=[0, 1, 2])
    same = SequencedReplacement(10, 2, sequence=np.array([0, 1, 2], dtype=np.uint8))
    other = SequencedReplacement(10, 2, sequence=[0, 2, 1])
    assert one.config() == same.config() != other.config()
    assert str(one.config()["sequence"]).startswith("sha256:")
    assert one.config()["sequence_length"] == 3


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (
            "sorted",
            ValueError,
            "sequence should be .shuffled., .identity., .reshuffled. or an array of integers, but got 'sorted'",
        ),
        ([], ValueError, "sequence should hold at least one index"),
        ([[0, 1]], ValueError, r"sequence should have one dimension, but got an array of shape \(1, 2\)"),
        ([0.0, 1.0], TypeError, "sequence should hold integers, but got an array of dtype float64"),
        (
            None,
            ValueError,
            "sequence should be .shuffled., .identity., .reshuffled. or an array of integers, but got None",
        ),
        ([[0], [1, 2]], ValueError, "sequence should be .* but got a list whose entries have unequal lengths"),
        ([-1, 3], ValueError, r"sequence should hold indices in \[0, 10\).*but got -1"),
    ],
)
def test_bad_sequences(bad: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_sequence(bad, 10, 0)  # type: ignore[arg-type]
    with pytest.raises(error, match=message):
        SequencedReplacement(10, 2, sequence=bad)  # type: ignore[arg-type]


@given(
    st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=12).filter(any),
    st.integers(1, 120),
)
def test_weighted_counts_are_proportional_and_spread(weights: list[float], length: int) -> None:
    sequence = weighted_sequence(weights, length)
    assert len(sequence) == length
    counts = np.bincount(sequence, minlength=len(weights))
    # The rule in the docstring, in fractions: round down, and add one for the largest remainders.
    shares = [Fraction(weight) * length / sum(map(Fraction, weights)) for weight in weights]
    expected = [int(share) for share in shares]
    for index in sorted(range(len(shares)), key=lambda i: (expected[i] - shares[i], i))[: length - sum(expected)]:
        expected[index] += 1
    assert counts.tolist() == expected
    prefix = np.arange(1, length + 1)[:, np.newaxis]
    appeared = np.cumsum(sequence[:, np.newaxis] == np.arange(len(weights)), axis=0)
    # "Spread evenly" means that in every prefix, each index is within one of its proportion.
    assert (np.abs(appeared * length - counts * prefix) < length).all()


def test_weighted_ties_are_exact() -> None:
    """The shares 1.5 and 2.5 have equal remainders, but not in floats."""
    assert np.bincount(weighted_sequence([3, 5], 4)).tolist() == [2, 2]
    assert np.bincount(weighted_sequence([0.1, 0.1, 0.1], 4)).tolist() == [2, 1, 1]
    assert np.bincount(weighted_sequence([2**60 + 1, 2**60 - 1], 1), minlength=2).tolist() == [1, 0]
    assert np.bincount(weighted_sequence([2**60 - 1, 2**60 + 1], 1), minlength=2).tolist() == [0, 1]


def test_a_shuffle_too_large_to_compute_is_refused() -> None:
    with pytest.raises(ValueError, match="num_samples should be at most .* with sequence=.shuffled., but got"):
        SequencedReplacement(2**48, 8, pool_size=100)
    assert SequencedReplacement(2**48, 8, pool_size=100, sequence="identity").batch(0).max() < 100


def test_weighted_small_lists() -> None:
    assert weighted_sequence([3, 1, 2], 6).tolist() == [0, 2, 0, 1, 0, 2]
    assert weighted_sequence([1, 1], 4).tolist() == [0, 1, 0, 1]
    assert weighted_sequence([0, 1], 3).tolist() == [1, 1, 1]
    assert weighted_sequence([1, 1, 1], 2).tolist() == [0, 1]
    assert weighted_sequence([1e308, 1e308], 2).tolist() == [0, 1]
    assert weighted_sequence(np.array([1, 3], dtype=np.uint8), 4).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("weights", "length", "error", "message"),
    [
        ([1.0, float("nan")], 5, ValueError, "weights should be finite and not negative, but got nan at 1"),
        ([1.0, -2.0], 5, ValueError, "weights should be finite and not negative, but got -2.0 at 1"),
        ([0.0, 0.0], 5, ValueError, "weights should not all be zero"),
        ([[1.0]], 5, ValueError, "weights should be one number per sample"),
        ([[1.0], [1.0, 2.0]], 5, ValueError, "weights should be .* whose entries have unequal lengths"),
        ([True, False], 5, TypeError, "weights should be real numbers"),
        ([1.0], 0, ValueError, "length should be at least 1, but got 0"),
    ],
)
def test_bad_weights(weights: list[float], length: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        weighted_sequence(weights, length)


# ---- Reshuffled sequences ----


@pytest.mark.parametrize("length", [1, 2, 97, 5_003])
def test_every_round_is_another_permutation(length: int) -> None:
    sequence = ReshuffledSequence(length, seed=3)
    rounds = sequence.at(np.arange(4 * length)).reshape(4, length)
    assert (np.sort(rounds) == np.arange(length)).all()
    if length > 2:
        assert len({tuple(row) for row in rounds.tolist()}) == 4


def test_rounds_do_not_depend_on_the_order_of_queries() -> None:
    positions = np.random.default_rng(0).integers(0, 10**15, 500)
    expected = [int(ReshuffledSequence(97, seed=3).at(np.array([position]))[0]) for position in positions]
    assert ReshuffledSequence(97, seed=3).at(positions).tolist() == expected


@settings(max_examples=50)
@given(st.integers(4, 30), st.integers(1, 60), st.integers(0, 2**63 - 1), st.data())
def test_equals_a_list_and_a_queue(num_samples: int, pool_size: int, seed: int, data: st.DataObject) -> None:
    batch_size = data.draw(st.integers(1, pool_size))
    order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size, sequence="reshuffled")
    draws, sequence = DistinctDraws(pool_size, batch_size, seed), ReshuffledSequence(num_samples, seed)
    steps = 60
    blocks = [draws.block(index) for index in range(-(-steps // draws.steps_per_block))]
    queue = sequence.at(np.arange(pool_size + steps * batch_size)).tolist()
    pool, queue = queue[:pool_size], queue[pool_size:][::-1]
    for step, slots in enumerate(np.concatenate(blocks)[:steps].tolist()):
        assert order.batch(step).tolist() == [pool[slot] for slot in slots]
        for slot in slots:
            pool[slot] = queue.pop()
    assert order.samples_in_pool(steps).tolist() == pool
