"""Counts against Python's integers, laws against an enumeration of all draws, and limits against the laws."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import RandomReshuffling, SequencedReplacement, theory

# ---- Counts ----

SIZES = [(1, 1), (2, 1), (3, 2), (5, 2), (5, 4), (10, 10), (17, 5), (100, 7), (1000, 64), (5000, 1)]


def without_by_hand(n: int, b: int, n_b: int) -> int:
    return sum(math.comb(n - k * b, b) if n - k * b >= b else 0 for k in range(n_b))


def test_batches_per_epoch_is_the_nearest_integer_and_ties_go_up():
    assert [theory.batches_per_epoch(n, 4) for n in range(4, 15)] == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4]
    assert theory.batches_per_epoch(50_000, 64) == 781  # 781.25


@pytest.mark.parametrize(("n", "b"), SIZES)
@pytest.mark.parametrize("epochs", [1, 200])
def test_counts_and_their_logarithms(n: int, b: int, epochs: int):
    n_b = theory.batches_per_epoch(n, b)
    without = theory.configurations_without_replacement(n, b, epochs)
    with_ = theory.configurations_with_replacement(n, b, epochs)
    conventional = theory.configurations_conventional(n, b, epochs)
    assert without == epochs * without_by_hand(n, b, n_b)
    assert with_ == epochs * n_b * math.comb(n, b)
    assert conventional == epochs * n_b * math.comb(n + b - 1, b)
    assert theory.log10_configurations_without_replacement(n, b, epochs) == close(math.log10(without))
    assert theory.log10_configurations_with_replacement(n, b, epochs) == close(math.log10(with_))
    assert theory.log10_configurations_conventional(n, b, epochs) == close(math.log10(conventional))
    ratio = theory.configurations_ratio(n, b)
    assert ratio == Fraction(with_, without)
    assert theory.log10_configurations_ratio(n, b) == close(log10(ratio))


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-14, abs=1e-9)


def log10(value: Fraction) -> float:
    return math.log10(value.numerator) - math.log10(value.denominator)


@pytest.mark.parametrize(
    ("n", "b"),
    [(50_000, 64), (50_000, 25_000), (100_000, 99_999), (123_457, 60_000), (2**21 + 1, 2), (9 * 2**20, 8)],
)
def test_logarithms_of_large_counts(n: int, b: int):
    """The last two have so many terms that the sum is computed as an integral."""
    n_b = theory.batches_per_epoch(n, b)
    exact = math.log10(200 * without_by_hand(n, b, n_b))
    assert theory.log10_configurations_without_replacement(n, b, 200) == close(exact)
    assert theory.log10_configurations_with_replacement(n, b, 200) == close(math.log10(200 * n_b * math.comb(n, b)))


@pytest.mark.parametrize("n", [2**20 - 1, 2**20, 2**20 + 1, 10**9, 2**53])
def test_logarithm_of_single_samples_has_a_closed_form(n: int):
    assert theory.log10_configurations_without_replacement(n, 1) == close(math.log10(n * (n + 1) // 2))


@given(data=st.data())
def test_inequality_term_by_term(data: st.DataObject):
    n = data.draw(st.integers(1, 3000))
    b = data.draw(st.integers(1, n))
    k = data.draw(st.integers(0, n // b - 1))
    ratio = theory.term_ratio(n, b, k)
    assert ratio == 1 if k == 0 else ratio > 1
    assert float(theory.log10_term_ratio(n, b, k)) == pytest.approx(log10(ratio), abs=1e-9)
    if k:
        assert ratio > theory.term_ratio(n, b, k - 1)


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_inequality_of_the_sums(n: int, b: int):
    b = min(n, b)
    ratio = theory.configurations_ratio(n, b)
    assert ratio >= 1
    assert (ratio == 1) == (theory.batches_per_epoch(n, b) == 1)
    assert theory.log10_configurations_ratio(n, b) == pytest.approx(log10(ratio), abs=1e-9)
    assert theory.configurations_conventional(n, b) >= theory.configurations_with_replacement(n, b)


def test_term_ratios_of_an_array():
    ratios = theory.log10_term_ratio(50_000, 64, np.arange(781))
    assert ratios.shape == (781,)
    assert ratios[0] == 0
    assert np.all(np.diff(ratios) > 0)
    assert ratios[390] == close(log10(theory.term_ratio(50_000, 64, 390)))


# ---- Laws, against every draw of small pools ----


class Exact(NamedTuple):
    copies: list[Fraction]
    draws: list[Fraction]
    variance: list[Fraction]
    unseen: list[Fraction]
    spread: Fraction
    equal_pairs: Fraction


def enumerate_pool(n: int, b: int, m: int, steps: int) -> list[Exact]:
    """Return the laws at steps 0 … `steps` by the definition: all draws of all steps are equally likely.

    Pools with the same contents in other slots have the same future, so they are counted together.
    """
    ways = Counter({(tuple(sorted(p % n for p in range(m))), (0,) * n): 1})
    laws = []
    for step in range(steps + 1):
        total = sum(ways.values())
        refill = [(m + step * b + j) % n for j in range(b)]
        after: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        equal_pairs = 0
        for (pool, counts), weight in ways.items():
            for slots in combinations(range(m), b):
                batch = [pool[slot] for slot in slots]
                equal_pairs += weight * sum(x == y for x, y in combinations(batch, 2))
                kept = [x for slot, x in enumerate(pool) if slot not in slots]
                new_counts = tuple(c + batch.count(i) for i, c in enumerate(counts))
                after[tuple(sorted(kept + refill)), new_counts] += weight

        def mean(values: list[tuple[Fraction, int]], total: int = total) -> Fraction:
            return sum((value * weight for value, weight in values), Fraction(0)) / total

        copies, draws, squares, unseen = [], [], [], []
        for i in range(n):
            copies.append(mean([(Fraction(pool.count(i)), w) for (pool, _), w in ways.items()]))
            draws.append(mean([(Fraction(counts[i]), w) for (_, counts), w in ways.items()]))
            squares.append(mean([(Fraction(counts[i] ** 2), w) for (_, counts), w in ways.items()]))
            unseen.append(mean([(Fraction(counts[i] == 0), w) for (_, counts), w in ways.items()]))
        variance = [square - d**2 for square, d in zip(squares, draws, strict=True)]
        average = Fraction(step * b, n)
        spread = sum(squares, Fraction(0)) / n - average**2
        pairs = Fraction(equal_pairs, total * math.comb(m, b))
        laws.append(Exact(copies, draws, variance, unseen, spread, pairs))
        ways = after
    return laws


POOLS = [(n, b, m, 4 if m < 2 * n else 3) for n in (3, 4, 5) for b in (1, 2) for m in (n - 1, n, 2 * n) if b <= m] + [
    (1, 1, 1, 3),  # one slot, one sample
    (1, 2, 3, 3),  # one sample in several slots
    (3, 3, 3, 3),  # the whole pool is drawn
    (3, 2, 3, 4),  # two copies can never both escape
    (4, 3, 4, 4),  # the sequence wraps within a batch
    (2, 3, 4, 4),  # a batch larger than the data
    (5, 2, 2, 5),  # a pool drawn whole, smaller than the data
    (7, 2, 3, 6),  # samples that have not entered the pool yet
    (3, 2, 8, 3),  # a pool that is no multiple of the data
]


@pytest.mark.parametrize(("n", "b", "m", "steps"), POOLS)
def test_laws_match_the_definition(n: int, b: int, m: int, steps: int):
    for step, exact in enumerate(enumerate_pool(n, b, m, steps)):
        inserted = [sum(p % n == i for p in range(m + step * b)) for i in range(n)]
        assert theory.copies_inserted(n, b, step, pool_size=m).tolist() == inserted
        for name, expected in [
            ("expected_copies", exact.copies),
            ("expected_draws", exact.draws),
            ("count_variance", exact.variance),
            ("unseen_probability", exact.unseen),
        ]:
            got = getattr(theory, name)(n, b, step, pool_size=m)
            np.testing.assert_allclose(got, [float(x) for x in expected], rtol=0, atol=1e-12, err_msg=name)
        assert theory.count_spread(n, b, step, pool_size=m) == tiny(exact.spread)
        assert theory.expected_equal_pairs(n, b, step, pool_size=m) == tiny(exact.equal_pairs)
        assert theory.unseen_fraction(n, b, step, pool_size=m) == tiny(sum(exact.unseen) / n)


def tiny(value: Fraction) -> object:
    return pytest.approx(float(value), rel=0, abs=1e-12)


@pytest.mark.parametrize(("n", "b", "steps"), [(3, 1, 3), (3, 2, 2), (4, 2, 2)])
def test_laws_of_other_orders_match_their_definitions(n: int, b: int, steps: int):
    one_batch = list(product(range(n), repeat=b))
    pairs = sum(sum(x == y for x, y in combinations(batch, 2)) for batch in one_batch)
    assert theory.equal_pairs_independent(n, b) == tiny(Fraction(pairs, len(one_batch)))
    runs = [sum(run, ()) for run in product(one_batch, repeat=steps)]
    missed = sum(0 not in run for run in runs)
    spread = sum(Fraction(sum(run.count(i) ** 2 for i in range(n)), n) for run in runs) / len(runs)
    assert theory.unseen_fraction_independent(n, b, steps) == tiny(Fraction(missed, len(runs)))
    assert theory.count_spread_independent(n, b, steps) == tiny(spread - Fraction(steps * b, n) ** 2)
    runs = [sum(run, ()) for run in product(combinations(range(n), b), repeat=steps)]
    missed = sum(0 not in run for run in runs)
    assert theory.unseen_fraction_batched(n, b, steps) == tiny(Fraction(missed, len(runs)))


def test_laws_of_other_orders_if_all_samples_are_drawn():
    assert theory.unseen_fraction_batched(5, 5, 1) == theory.unseen_fraction_independent(1, 1, 1) == 0
    assert [theory.unseen_fraction_reshuffling(10, 4, t) for t in range(4)] == [1, 0.6, 0.2, 0]


# ---- Properties of the laws at all sizes ----


@given(
    n=st.integers(1, 60),
    b=st.integers(1, 80),
    extra=st.integers(0, 100),
    step=st.one_of(st.integers(0, 50), st.integers(0, 2**62)),
)
def test_copies_fill_the_pool_and_draws_add_up(n: int, b: int, extra: int, step: int):
    m = b + extra
    copies = theory.expected_copies(n, b, step, pool_size=m)
    assert copies.sum() == pytest.approx(m, rel=1e-12)
    if step * b < 2**40:
        assert theory.copies_inserted(n, b, step, pool_size=m).sum() == m + step * b
        assert theory.expected_draws(n, b, step, pool_size=m).sum() == pytest.approx(step * b, rel=1e-12, abs=1e-9)
    assert np.all(theory.count_variance(n, b, step, pool_size=m) > -1e-9)
    within = theory.count_variance(n, b, step, pool_size=m).mean()
    assert theory.count_spread(n, b, step, pool_size=m) >= within - 1e-9
    assert 0 <= theory.expected_equal_pairs(n, b, step, pool_size=m) <= b * (b - 1) / 2 * (1 + 1e-12)
    assert 0 <= theory.unseen_fraction(n, b, step, pool_size=m) <= 1


def test_residence_is_geometric():
    stay = np.arange(1, 20_001)
    for m in (100, 250):
        probabilities = theory.residence_probability(100, 5, stay, pool_size=m)
        np.testing.assert_allclose(probabilities[:3], [5 / m * (1 - 5 / m) ** s for s in range(3)], rtol=1e-14)
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert probabilities @ stay == pytest.approx(theory.mean_residence(100, 5, pool_size=m), rel=1e-12)
    assert theory.residence_probability(4, 4, [1, 2]).tolist() == [1, 0]
    assert theory.mean_residence(50_000, 64) == 50_000 / 64


def test_results_have_the_shape_of_place():
    everything = theory.expected_copies(50, 7, 30)
    for name in ("copies_inserted", "expected_copies", "expected_draws", "count_variance", "unseen_probability"):
        law = getattr(theory, name)
        everything = law(50, 7, 30)
        assert everything.shape == (50,)
        assert float(law(50, 7, 30, 49)) == everything[49]
        assert law(50, 7, 30, [[3, 1], [4, 1]]).tolist() == everything[[[3, 1], [4, 1]]].tolist()
        assert law(50, 7, 30, np.array([5], dtype=np.uint8)).tolist() == [everything[5]]
        assert law(50, 7, 30, np.array([], dtype=np.int64)).shape == (0,)


def test_numpy_integers_are_integers():
    assert theory.configurations_without_replacement(np.uint8(200), np.uint8(100)) == math.comb(200, 100) + 1
    assert theory.expected_equal_pairs(np.int8(100), np.int8(4), np.int8(100)) == pytest.approx(
        theory.expected_equal_pairs(100, 4, 100)
    )


def test_far_steps_are_exact_and_cheap():
    far = 2**62
    assert theory.copies_inserted(50_000, 64, far, 7) == (50_000 + far * 64 - 1 - 7) // 50_000 + 1
    # After a whole number of rounds the pool is the same. N steps insert B rounds.
    near = theory.expected_copies(1000, 7, 20_000)
    same = theory.expected_copies(1000, 7, 20_000 + 1000 * 10**12)
    np.testing.assert_allclose(same, near, rtol=1e-14)
    assert theory.count_spread(1000, 7, 20_000 + 1000 * 10**12) == pytest.approx(
        theory.count_spread(1000, 7, 20_000), rel=1e-12
    )
    assert theory.unseen_probability(1000, 7, far).max() == 0
    assert theory.expected_copies(50_000, 64, far).sum() == pytest.approx(50_000, rel=1e-12)


def test_sums_over_several_chunks(monkeypatch: pytest.MonkeyPatch):
    def numbers() -> list[float]:
        pool = {"pool_size": 70}
        laws = [theory.count_spread, theory.expected_equal_pairs, theory.unseen_fraction]
        return [law(100, 9, 30, **pool) for law in laws]

    whole = numbers()
    monkeypatch.setattr(theory.pool_laws, "_CHUNK", 7)
    assert numbers() == pytest.approx(whole, rel=1e-12)


# ---- Limits ----

SMALL_STEPS = 20_000  # N with B = 1 or 2, so that B/M and 1/M are small


@pytest.mark.parametrize("k", [0.25, 1, 3])
def test_copies_tend_to_their_limit(k: float):
    n, m = SMALL_STEPS, int(k * SMALL_STEPS)
    step = 150 * n - m  # a whole number of rounds, long after the start: place i entered (N - i) steps ago
    copies = theory.expected_copies(n, 1, step, pool_size=m)
    for u in (0.0, 0.1, 0.5, 0.9):
        assert copies[n - 1 - int(u * n)] == pytest.approx(theory.limit_copies(u, k), rel=1e-3)


@pytest.mark.parametrize("k", [0.25, 1, 3])
@pytest.mark.parametrize("fraction", [0, 0.25, 0.6])
def test_spread_tends_to_its_limit(k: float, fraction: float):
    n, m = SMALL_STEPS, int(k * SMALL_STEPS)
    step = int((150 + fraction) * n) - m
    limit = theory.limit_count_spread(k, fraction)
    assert theory.count_spread(n, 1, step, pool_size=m) == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("k", [0.25, 1, 3])
def test_equal_pairs_tend_to_their_limit(k: float):
    n, b, m = SMALL_STEPS, 2, int(k * SMALL_STEPS)
    pairs = theory.expected_equal_pairs(n, b, 150 * n // b, pool_size=m)
    assert pairs == pytest.approx(theory.limit_equal_pairs(n, b, pool_size=m), rel=1e-3)
    assert pairs < theory.equal_pairs_independent(n, b)


def unseen_long_after_the_start(n: int, m: int, epochs: int = 40, most: int = 40) -> float:
    """Return the fraction of samples unseen in N steps with B = 1, from the Markov chain of each sample's copies.

    `shares[i, c]` is the probability of c copies of sample i. A step draws one with probability c/M, then inserts the
    next.
    """
    copies = np.arange(most)
    shares = np.zeros((n, most))
    shares[np.arange(n), [len(range(i, m, n)) for i in range(n)]] = 1
    for step in range(epochs * n):
        taken = shares * (copies / m)
        shares -= taken
        shares[:, :-1] += taken[:, 1:]
        shares[(m + step) % n] = np.roll(shares[(m + step) % n], 1)
    for step in range(epochs * n, (epochs + 1) * n):
        shares *= 1 - copies / m
        shares[(m + step) % n] = np.roll(shares[(m + step) % n], 1)
    return float(shares.sum()) / n


@pytest.mark.parametrize("k", [0.5, 1, 2])
def test_unseen_fraction_long_after_the_start(k: float):
    limit = theory.limit_unseen_fraction(k)
    errors = [unseen_long_after_the_start(n, int(k * n)) - limit for n in (100, 200)]
    assert abs(errors[0]) < 0.5 / 100
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.05)  # the error falls as 1/N


def test_unseen_fraction_of_the_paper_and_of_extreme_pools():
    assert theory.limit_unseen_fraction() == pytest.approx(0.279, abs=5e-4)
    assert theory.limit_unseen_fraction(1000) == pytest.approx(math.exp(-1), abs=1e-3)
    # As k -> 0, a sample is unseen only if it was inserted too late to be drawn before the epoch ends.
    assert theory.limit_unseen_fraction(1e-6) == pytest.approx(0.5e-6, rel=1e-9)
    grid = [theory.limit_unseen_fraction(k) for k in (0.01, 0.1, 0.5, 1, 2, 10)]
    assert grid == sorted(grid)


# ---- Bad input ----

VALID = {
    "num_samples": 10,
    "batch_size": 2,
    "epochs": 3,
    "k": 1,
    "stay": 1,
    "step": 5,
    "steps": 5,
    "place": 4,
    "pool_size": 6,
    "pool_epochs": 1.0,
    "epoch_fraction": 0.5,
    "epochs_since_insertion": 0.5,
    "order": SequencedReplacement(10, 2),
    "other": RandomReshuffling(10, 2),
    "frequencies": [0.0, 0.5],
    "kappa": 1.0,
    "momentum": 0.9,
    "learning_rate": 0.1,
    "weight_decay": 5e-4,
    "noticeable": 0.05,
    "values": range(10),
    "labels": [0, 1] * 5,
}
# A wrong type and an invalid value for each. tests/test_core_parts.py tests other wrong types.
BAD = {
    "num_samples": [10.0, 2**53 + 1],
    "batch_size": [True, 0],
    "epochs": [None, 0],
    "k": [1.5, 5],
    "stay": ["1", [0]],
    "step": [5.0, 2**62 + 1],
    "steps": [5.0, -1],
    "place": [np.array([1.0]), [0, 10]],
    "pool_size": [6.0, 1],
    "pool_epochs": ["1", math.inf],
    "epoch_fraction": [True, 1.5],
    "epochs_since_insertion": [1 + 2j, -0.5],
    "order": ["srs", SequencedReplacement(2, 1, sequence=[0])],
    "other": [None, RandomReshuffling(10, 5)],
    "frequencies": [["0.1"], [0.6]],
    "kappa": [True, 0],
    "momentum": ["0.9", 1],
    "learning_rate": [None, 0],
    "weight_decay": ["1", -1],
    "noticeable": [True, 0],
    "values": [["a"] * 10, [1.0]],
    "labels": [None, [0, 1]],
}
PUBLIC = [
    function
    for name, function in inspect.getmembers(theory, inspect.isfunction)
    if not name.startswith("_") and function.__module__.startswith(theory.__name__)
]


@pytest.mark.parametrize("function", PUBLIC)
def test_good_arguments_are_accepted(function):
    function(**{name: VALID[name] for name in inspect.signature(function).parameters})


@pytest.mark.parametrize("function", PUBLIC)
def test_bad_arguments_are_named_in_one_sentence(function):
    valid = {name: VALID[name] for name in inspect.signature(function).parameters}
    for name in valid:
        if name in ("order", "other", "frequencies") or (function, name) == (theory.noise_variance, "kappa"):
            continue  # not a single number: see test_noise_laws.py
        for value, error in zip(BAD[name], (TypeError, ValueError), strict=True):
            with pytest.raises(error, match=rf"{name} .*but got") as raised:
                function(**valid | {name: value})
            assert "\n" not in str(raised.value)


def test_batches_that_do_not_fit_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"at most num_samples = 10, but got 11: take a smaller batch"):
        theory.configurations_ratio(10, 11)
    with pytest.raises(ValueError, match=r"at most pool_size = 4, but got 5: take a smaller batch"):
        theory.expected_copies(10, 5, 0, pool_size=4)
    with pytest.raises(ValueError, match=r"each place should be at most 9, but got 10"):
        theory.expected_copies(10, 5, 0, [3, 10])
    with pytest.raises(ValueError, match=r"step should insert fewer than 2\*\*63 copies, but got"):
        theory.copies_inserted(1, 8, 2**62, pool_size=8)
