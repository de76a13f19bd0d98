"""The numbers in docs/theory.md that its own examples do not check."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from replenish import (
    BallsInBins,
    FlipFlop,
    IndependentDraws,
    Jitter,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    ShuffleOnce,
    WeightedDraws,
    theory,
)

N, B = 50_000, 50
SRS, RESHUFFLING = SequencedReplacement(N, B), RandomReshuffling(N, B)


def test_counts_of_the_paper() -> None:
    assert theory.term_ratio(5, 2, 1) == Fraction(10, 3)
    without = theory.log10_configurations_without_replacement(50_000, 64, epochs=200)
    with_replacement = theory.log10_configurations_with_replacement(50_000, 64, epochs=200)
    assert (round(without, 2), round(with_replacement, 2)) == (215.01, 216.81)
    ratio = 10 ** theory.log10_configurations_ratio(50_000, 64)
    assert round(ratio, 1) == 62.4 == round(65 / (1 + 64 * 65 / 100_000), 1)
    assert 200 * theory.batches_per_epoch(50_000, 64) == 156_200


def test_the_pool() -> None:
    assert abs(sum(theory.residence_probability(50_000, 64, range(1, 20_000))) - 1) < 1e-9
    # The exact law for CIFAR after 100 epochs, for the sample inserted last and the next one.
    last_and_next = theory.expected_copies(50_000, 64, 78_125, place=[49_999, 0])
    assert last_and_next.round(3).tolist() == [1.582, 0.582]

    assert round(theory.limit_count_spread(), 3) == 0.582
    in_mid_round = [theory.limit_count_spread(1, part / 1000) for part in range(1001)]
    assert (round(min(in_mid_round), 3), round(max(in_mid_round), 3)) == (0.568, 0.600)
    later = [1_000, 10_000, 100_000]  # steps, for the exact law
    assert max(theory.count_spread(5_000, 50, step) for step in later) < 0.59
    independent = [theory.count_spread_independent(5_000, 50, step) for step in later]
    assert [round(value) for value in independent] == [10, 100, 1000]

    assert round((1 - np.exp(-1)) / np.e, 3) == 0.233
    assert round(theory.unseen_fraction(50_000, 64), 3) == 0.232  # 782 steps, slightly more than N/B
    u = (np.arange(10_000) + 0.5) / 10_000  # equation (10), computed directly
    factors = 1 - np.exp(-(u + np.arange(40)[:, None])) * (1 - np.exp(-1))
    by_hand = np.mean(np.exp(-u) * factors.prod(axis=0))
    assert abs(by_hand - theory.limit_unseen_fraction()) < 1e-6
    assert round(theory.limit_unseen_fraction(), 3) == 0.279
    assert round(theory.unseen_fraction_independent(50_000, 64, steps=782), 3) == 0.368
    assert round(theory.limit_equal_pairs(50_000, 64) * 50_000 / (64 * 63), 3) == 0.291


@pytest.mark.parametrize(
    ("k", "row"),
    [
        (0.25, [4.07, 0.07, 0.19, 12.20, 0.07]),
        (0.5, [2.31, 0.31, 0.33, 20.65, 0.31]),
        (1, [1.58, 0.58, 0.58, 27.92, 0.58]),
        (2, [1.27, 0.77, 1.08, 32.24, 0.77]),
        (4, [1.13, 0.88, 2.08, 34.50, 0.88]),
    ],
)
def test_pools_of_other_sizes(k: float, row: list[float]) -> None:
    rates = [theory.limit_copies(u, k) / k for u in (0, 1)]
    pairs = 1 / (k * np.expm1(1 / k))
    found = [*rates, theory.limit_count_spread(k), 100 * theory.limit_unseen_fraction(k), pairs]
    assert np.round(found, 2).tolist() == row


def test_spectra_of_epochs() -> None:
    n, b = 1000, 10
    steps, f = n // b, np.array([0.0005, 0.002, 0.005, 0.1, 0.5])
    kernel = (np.sin(np.pi * f * steps) / (steps * np.sin(np.pi * f))) ** 2
    reshuffling = theory.noise_spectrum(RandomReshuffling(n, b), f).continuous
    assert np.allclose(reshuffling, n / (n - 1) * (1 - kernel))
    assert np.allclose(reshuffling[0], (2 * np.pi * f[0] * steps) ** 2 / 12, rtol=0.02)
    assert theory.noise_spectrum(FlipFlop(n, b), f).continuous[0] < 0.0005
    once = theory.noise_spectrum(ShuffleOnce(n, b), f)
    assert not once.continuous.any()
    assert len(once.line_frequencies) == steps // 2
    assert np.allclose(once.line_powers[:-1], 2 * b / (n - 1))  # at f and -f together, in units of S0
    cifar = [theory.noise_spectrum(RandomReshuffling(N, 64, drop_last=d), [0.0]).continuous[0] for d in (False, True)]
    assert np.round(cifar, 4).tolist() == [0.0029, 0.0003]
    lines = theory.noise_spectrum(SRS, []).line_powers
    assert abs(lines.sum() * N / B - (1 / np.tanh(0.5) / 2 - 1)) < 1e-3


def test_spectra_of_the_other_orders() -> None:
    n, b = 1000, 10
    f = np.array([0.0005, 0.002, 0.005, 0.1, 0.5])
    dip = (np.sin(np.pi * f * n / b) / (n / b * np.sin(np.pi * f))) ** 2
    expected = {
        Jitter(n, b, shard_size=50): n / (n - 1) * (1 - dip),
        BallsInBins(n, b): 1 - dip,
        PoissonDraws(n, b): 1 - b / n,
        RepeatedAugmentation(n, b, repeats=2): n / (n - 1) * (2 - dip),
    }
    for order, law in expected.items():
        assert np.allclose(theory.noise_spectrum(order, f).continuous, law), order
    p = np.arange(1, n + 1) / np.arange(1, n + 1).sum()
    weighted = theory.noise_spectrum(WeightedDraws(n, b, weights=p), f)
    assert np.allclose(weighted.continuous, n / (n - 1) * (1 - np.sum(p**2)))
    assert np.allclose(weighted.line_powers, b * n / (n - 1) * (np.sum(p**2) - 1 / n))  # at frequency 0: a bias
    small, large = (theory.noise_spectrum(ShuffleBuffer(n, b, buffer_size=m), f).continuous for m in (2, 999))
    assert small[:3].max() < 0.001
    assert np.allclose(large, n / (n - 1) * (1 - dip), atol=0.01)
    fresh = theory.noise_spectrum(SequencedReplacement(n, b, sequence="reshuffled"), f)
    stay = (b / n) ** 2 / ((b / n) ** 2 + 2 * (1 - b / n) * (1 - np.cos(2 * np.pi * f)))
    assert np.allclose(fresh.continuous, 1 - stay * dip, atol=0.01)
    assert not len(fresh.line_powers)


@pytest.mark.parametrize(
    ("kappa", "row"),
    [
        (0.1, [0.033, 0.001, 0.017, 0.028, 0.091, 0.286]),
        (0.3, [0.093, 0.007, 0.050, 0.079, 0.232, 0.546]),
        (1, [0.264, 0.076, 0.164, 0.231, 0.503, 0.800]),
        (3, [0.545, 0.397, 0.439, 0.509, 0.757, 0.924]),
        (10, [0.821, 0.800, 0.801, 0.819, 0.918, 0.976]),
    ],
)
def test_the_table_of_variances(kappa: float, row: list[float]) -> None:
    orders = [RESHUFFLING, ShuffleOnce(N, B)]
    orders += [SequencedReplacement(N, B, pool_size=int(k * N)) for k in (0.25, 1, 4)]
    found = [float(theory.noise_variance(order, kappa)) for order in orders]
    found.insert(1, 1 - 2 / kappa * np.tanh(kappa / 2))
    assert np.round(found, 3).tolist() == row


def test_what_follows_for_sgd() -> None:
    factors = [theory.equivalent_learning_rate(RESHUFFLING, SRS, kappa) for kappa in (0.001, 1, 10)]
    assert np.round(factors, 2).tolist() == [1.73, 1.44, 1.10]
    short_epochs = RandomReshuffling(2500, 50), SequencedReplacement(2500, 50)
    low = [float(theory.noise_variance(order, 0.001, momentum=0.9)) for order in short_epochs]
    assert round(low[1] / low[0], 1) == 4.1
    kappas = np.linspace(1, 2, 101)
    excess = theory.noise_variance(SRS, kappas) - theory.noise_variance(RESHUFFLING, kappas)
    assert round(excess.max(), 3) == 0.247
    assert round(kappas[excess.argmax()], 2) == 1.43
    short, dropped, whole = (
        float(theory.noise_variance(RandomReshuffling(N, size, drop_last=drop), 0.001))
        for size, drop in ((64, False), (64, True), (50, False))
    )
    assert 9 < short / whole < 11
    assert dropped / whole < 2.5
    alike = [
        theory.noise_spectrum(order, [1e-5]).continuous
        for order in (SequencedReplacement(N, B, pool_size=14_434), RESHUFFLING)
    ]
    assert np.allclose(*alike, rtol=1e-2)
    paper = theory.when_orders_differ(50_000, 64, learning_rate=0.1, momentum=0.9, weight_decay=5e-4)
    assert 0.02 < paper.same_above < 0.03


def test_the_table_of_gaps() -> None:
    waits = [theory.visit_gaps(order) for order in (RESHUFFLING, FlipFlop(N, B), SRS, IndependentDraws(N, B))]
    assert np.round([100 * (1 - law.survival(0.1)) for law in waits], 1).tolist() == [0.5, 2.8, 5.7, 9.5]
    assert np.round([100 * law.survival(2) for law in waits], 1).tolist() == [0, 0, 9.4, 13.5]
    assert np.round([law.variance for law in waits], 3).tolist() == [0.167, 0.25, 0.482, 1]
    assert abs(theory.visit_gaps(RepeatedAugmentation(1000, 10, repeats=2)).mean - 2) < 0.02
