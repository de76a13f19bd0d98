"""The laws of noise against an enumeration of all draws, and their closed sums against integrals."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import (
    FlipFlop,
    Order,
    RandomReshuffling,
    SequencedReplacement,
    ShuffleOnce,
    theory,
)
from replenish.theory.noise_laws import EpochNoise, NoiseLaw, PalindromeNoise, RepeatedEpochNoise
from replenish.theory.order_laws import noise_law
from replenish.theory.pool_noise import BatchMeanNoise, PoolNoise, SequenceNoise

LAGS = 9
Batches = list[tuple[int, ...]]

# ---- Spectra, against the covariances of the definition ----


def covariances(law: NoiseLaw) -> np.ndarray:
    """Return the covariances C(0), C(1), ... relative to white noise: the spectrum, integrated on a fine grid."""
    frequencies = (np.arange(2**14) + 0.5) / 2**14
    density, (where, powers) = law.continuous(frequencies), law.lines()
    return np.array(
        [
            np.mean(density * np.cos(2 * np.pi * frequencies * lag)) + np.sum(powers * np.cos(2 * np.pi * where * lag))
            for lag in range(LAGS)
        ]
    )


def from_coincidences(n: int, b: int, coincidences: list[float]) -> np.ndarray:
    return b * n / (n - 1) * (np.array(coincidences) - 1 / n)


def of_blocks(n: int, b: int, block: Batches, *, repeated: bool) -> np.ndarray:
    """Return the covariances for a block of batches, which is repeated, or followed by independent blocks of its kind.

    By symmetry, the samples themselves do not matter, only which places of a block have the same sample.
    """

    def coincidence(first: int, second: int) -> float:
        if second >= len(block) and not repeated:
            return 1 / n
        one, other = block[first], block[second % len(block)]
        return sum(x == y for x in one for y in other) / (len(one) * len(other))

    steps = range(len(block))
    return from_coincidences(n, b, [float(np.mean([coincidence(t, t + lag) for t in steps])) for lag in range(LAGS)])


def cut(samples: tuple[int, ...], b: int, drop_last: bool) -> Batches:
    batches = [samples[start : start + b] for start in range(0, len(samples), b)]
    return batches[:-1] if drop_last and len(batches[-1]) < b else batches


SIZES = [(4, 2), (5, 2), (6, 3), (5, 3), (6, 1), (4, 3), (2, 3), (3, 1), (6, 4), (7, 3)]
EPOCH_CASES = [(n, b, drop) for n, b in SIZES for drop in (False, True) if not drop or b <= n]


@pytest.mark.parametrize(("n", "b", "drop_last"), EPOCH_CASES)
def test_epochs_match_their_definition(n: int, b: int, drop_last: bool) -> None:
    samples = tuple(range(n))
    forth, back = cut(samples, b, drop_last), cut(samples[::-1], b, drop_last)
    options = {"drop_last": drop_last}
    cases: list[tuple[Order, Batches, bool]] = [
        (RandomReshuffling(n, b, **options), forth, False),
        (ShuffleOnce(n, b, **options), forth, True),
        (FlipFlop(n, b, **options), forth + back, False),
    ]
    for order, block, repeated in cases:
        found = covariances(noise_law(order))
        np.testing.assert_allclose(found, of_blocks(n, b, block, repeated=repeated), atol=1e-11, err_msg=str(order))


@pytest.mark.parametrize(("n", "b"), SIZES)
def test_a_sequence_matches_its_definition(n: int, b: int) -> None:
    around = [tuple((step * b + place) % n for place in range(b)) for step in range(n)]
    expected = of_blocks(n, b, around, repeated=True)
    np.testing.assert_allclose(covariances(SequenceNoise(n, b)), expected, atol=1e-11)


def test_a_reshuffled_sequence_cut_across_its_seam() -> None:
    """Batches of 2 from epochs of 3. Within an epoch samples never repeat, across epochs they meet by chance."""
    n, b = 3, 2
    epochs = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]

    def place_pair(first: int, second: int) -> float:
        return float(first == second) if epochs[first] == epochs[second] else 1 / n

    coincidences = []
    for lag in range(LAGS - 4):
        pairs = [
            place_pair(2 * step + i, 2 * (step + lag) + j) for step in range(3) for i in range(2) for j in range(2)
        ]
        coincidences.append(float(np.mean(pairs)))
    found = covariances(BatchMeanNoise(n, b, EpochNoise(n, 1, n)))[: LAGS - 4]
    np.testing.assert_allclose(found, from_coincidences(n, b, coincidences), atol=1e-10)


def of_pool(n: int, b: int, m: int) -> np.ndarray:
    """Return the covariances for a pool in its stationary state, from the Markov chain of all pools and draws."""
    start = (tuple(sorted(p % n for p in range(m))), m % n)
    number, todo, moves = {start: 0}, [start], []
    draws = list(combinations(range(m), b))
    while todo:
        state = todo.pop()
        pool, position = state
        for slots in draws:
            batch = [pool[slot] for slot in slots]
            kept = [x for slot, x in enumerate(pool) if slot not in slots]
            after = (tuple(sorted(kept + [(position + i) % n for i in range(b)])), (position + b) % n)
            if after not in number:
                number[after] = len(number)
                todo.append(after)
            moves.append((number[state], batch, number[after]))
    size = len(number)
    chain, drawn, drawn_to, within = np.zeros((size, size)), np.zeros((n, size)), np.zeros((n, size, size)), 0.0
    for before, _, after in moves:
        chain[before, after] += 1 / len(draws)
    balance = np.vstack([chain.T - np.eye(size), np.ones(size)])
    stationary = np.linalg.lstsq(balance, np.append(np.zeros(size), 1), rcond=None)[0]
    for before, batch, after in moves:
        within += stationary[before] / len(draws) * sum(count**2 for count in Counter(batch).values())
        for sample in batch:
            drawn[sample, before] += 1 / len(draws)
            drawn_to[sample, before, after] += 1 / len(draws)
    coincidences = [within / b**2]
    since = np.einsum("i,sij->sj", stationary, drawn_to)
    for _ in range(LAGS - 1):
        coincidences.append(float(np.sum(since * drawn)) / b**2)
        since = since @ chain
    return from_coincidences(n, b, coincidences)


POOLS = [(3, 1, 3), (3, 1, 2), (4, 2, 4), (4, 2, 3), (3, 2, 3), (2, 1, 3), (3, 1, 5), (2, 2, 4), (5, 2, 3), (3, 2, 2)]


@pytest.mark.parametrize(("n", "b", "m"), [*POOLS, (2, 3, 4), (4, 1, 4)])
def test_a_pool_matches_its_definition(n: int, b: int, m: int) -> None:
    law = noise_law(SequencedReplacement(n, b, pool_size=m))
    expected = of_pool(n, b, m)
    np.testing.assert_allclose(covariances(law), expected, atol=1e-9)
    assert law.covariance_sum(1.0).real == pytest.approx(expected[0], abs=1e-9)  # lags above 0 have no weight


# ---- Closed sums, against the integral of the spectrum ----

LAWS = [
    EpochNoise(50, 5, 10),
    EpochNoise(53, 5, 11, inverse_size=(10 + 5 / 3) / 11),
    EpochNoise(5000, 5, 1000),
    PalindromeNoise(53, 5, 10),
    PalindromeNoise(53, 5, 11, inverse_size=(10 + 5 / 3) / 11),
    PalindromeNoise(5000, 5, 1000),
    RepeatedEpochNoise(53, 5, 10),
    SequenceNoise(50, 5),
    PoolNoise(50, 5, 50, SequenceNoise(50, 5)),
    PoolNoise(53, 5, 20, SequenceNoise(53, 5)),
    PoolNoise(50, 5, 50, EpochNoise(50, 5, 10)),
    PoolNoise(5000, 5, 20_000, SequenceNoise(5000, 5)),
]
DECAYS = [1e-6, 1e-3, 0.1, 0.1000001, 0.25, 0.5, 1.0, 1.5, 1.9, 0.1 + 0.3j, 0.01 + 0.1j]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_closed_sums_equal_the_integrals(law: NoiseLaw) -> None:
    for decay in DECAYS:  # two of the pools have the decay 0.1, where the closed form is 0/0
        integral = NoiseLaw.covariance_sum(law, decay)
        assert abs(law.covariance_sum(decay) - integral) < 2e-8 * (1 + abs(integral)), decay


@settings(max_examples=50)
@given(n=st.integers(2, 300), b=st.integers(1, 40), m=st.integers(1, 600), kappa=st.floats(1e-6, 30))
def test_variances_are_positive(n: int, b: int, m: int, kappa: float) -> None:
    m = max(m, b)
    kappa = min(kappa, 1.9 * n / b)
    ratio = float(theory.noise_variance(SequencedReplacement(n, b, pool_size=m), kappa))
    assert ratio > -1e-12
    for momentum in (0.0, 0.9):
        for kind in (RandomReshuffling, ShuffleOnce, FlipFlop):
            assert theory.noise_variance(kind(n, b), kappa, momentum) > -1e-9


# ---- The noise of SGD ----


@pytest.mark.parametrize("kappa", [0.2, 2.0, 40.0])
def test_momentum_matches_the_integral_of_the_transfer_function(kappa: float) -> None:
    """V is the integral of the spectrum times |1 / (z - (1 + beta - step) + beta / z)|^2, for any poles."""
    n, b, momentum = 600, 10, 0.8
    step = kappa * (1 - momentum) * b / n
    frequencies = (np.arange(2**17) + 0.5) / 2**18
    z = np.exp(2j * np.pi * frequencies)
    transfer = np.abs(1 / (z - (1 + momentum - step) + momentum / z)) ** 2
    for order in (RandomReshuffling(n, b), FlipFlop(n, b), SequencedReplacement(n, b), ShuffleOnce(n, b)):
        spectrum = theory.noise_spectrum(order, frequencies)
        z_lines = np.exp(2j * np.pi * spectrum.line_frequencies)
        lines = spectrum.line_powers @ (np.abs(1 / (z_lines - (1 + momentum - step) + momentum / z_lines)) ** 2)
        ratio = (np.mean(spectrum.continuous * transfer) + lines) / np.mean(transfer)
        assert theory.noise_variance(order, kappa, momentum) == pytest.approx(ratio, rel=1e-6)


def test_equal_poles() -> None:
    """If (1 - sqrt(step))^2 = momentum, both poles are equal. The variance is smooth there."""
    order, momentum = RandomReshuffling(1000, 10), 0.81
    kappa = 0.01 * 100 / (1 - momentum)
    near = theory.noise_variance(order, kappa * np.array([1 - 1e-3, 1, 1 + 1e-3]), momentum)
    assert near[1] == pytest.approx((near[0] + near[2]) / 2, rel=1e-6)


# ---- Advice and errors ----


def test_when_orders_differ() -> None:
    srs, reshuffling = SequencedReplacement(50_000, 50), RandomReshuffling(50_000, 50)
    factor = theory.equivalent_learning_rate(reshuffling, srs, 1.0)
    assert theory.equivalent_learning_rate(srs, reshuffling, factor) * factor == pytest.approx(1, rel=1e-9)
    plain = theory.when_orders_differ(50_000, 50, 0.1)
    assert plain.smallest_kappa == 0
    assert plain.largest_difference == pytest.approx(0.247, abs=1e-3)
    assert plain.kappa_per_curvature * plain.at_curvature == pytest.approx(1.4, abs=0.1)
    assert (plain.variance_ratio, plain.learning_rate_ratio) == pytest.approx((3, math.sqrt(3)), abs=0.02)
    assert "can tell SRS from reshuffling" in str(plain)
    decayed = theory.when_orders_differ(50_000, 50, 0.1, 0.9, weight_decay=0.1)
    assert decayed.same_above == 0
    assert str(decayed).startswith("The order cannot matter: weight decay alone makes kappa 100")
    nearly_diverging = theory.when_orders_differ(1000, 10, 1.0, weight_decay=1.9)
    assert nearly_diverging.learning_rate_ratio == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: theory.noise_spectrum(RandomReshuffling(10, 2), [0.6]),
            ValueError,
            "between 0 and 0.5, but got 0.6",
        ),
        (lambda: theory.noise_variance(RandomReshuffling(10, 2), 10.0), ValueError, "kappa should be below 10, or SGD"),
        (lambda: theory.noise_variance(RandomReshuffling(10, 2), -1.0), ValueError, "kappa should be positive"),
        (lambda: theory.noise_variance(RandomReshuffling(10, 2), [1, math.nan]), ValueError, "each kappa should be"),
        (lambda: theory.noise_variance(RandomReshuffling(10, 2), ["1"]), TypeError, "kappa should hold real numbers"),
        (lambda: theory.noise_variance(RandomReshuffling(1, 1), 1.0), ValueError, "num_samples should be at least 2"),
        (
            lambda: theory.noise_spectrum(SequencedReplacement(4, 2, sequence=[0, 1, 2, 2]), [0.1]),
            theory.NoLawError,
            "every sample once .* measure it with replenish.diagnostics.noise_spectrum",
        ),
        (lambda: theory.visit_gaps("srs"), TypeError, "order should be an Order of replenish, but got a str"),
        (lambda: theory.when_orders_differ(100, 10, 1.0, 0.0, 3.0), ValueError, "or SGD diverges, but got 3"),
        (lambda: theory.when_orders_differ(100, 64, 0.1), ValueError, "at most half of num_samples .* got 64 of 100"),
    ],
)
def test_bad_input(call: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()  # type: ignore[operator]


def test_an_order_of_your_own_is_refused_with_the_measurement_to_use() -> None:
    class Backwards(RandomReshuffling):
        """A subclass may draw differently, so the law of its parent does not apply."""

    with pytest.raises(theory.NoLawError, match="got Backwards: measure it with replenish.diagnostics.visit_gaps"):
        theory.visit_gaps(Backwards(10, 2))
