"""The laws of gaps, noise and SGD against the draws of the orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contracts import FACTS, facts
from scipy.signal import lfilter

from replenish import (
    BallsInBins,
    BatchedReplacement,
    BlockReshuffling,
    BlockShuffle,
    FlipFlop,
    IndependentDraws,
    Jitter,
    LengthGrouped,
    Mixture,
    Order,
    PairedReversal,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    ShuffleOnce,
    Stratified,
    WeightedDraws,
    diagnostics,
    theory,
)
from replenish.measure.reading import read_draws
from replenish.measure.spectrum import MeasuredSpectrum, batch_means, expected_density, random_signs
from replenish.orders import ORDERS, build_order
from replenish.theory.noise_laws import NoiseLaw
from replenish.theory.order_laws import noise_law

N, B = 60, 6
LAGS = 25  # two epochs and a half
SIZES: dict[str, Any] = {"num_samples": N, "batch_size": B}
LENGTHS = np.random.default_rng(0).integers(1, 100, N)
WEIGHTS = 1.0 + np.arange(N)

NOISE: dict[str, Order] = {
    "reshuffled": SequencedReplacement(**SIZES, sequence="reshuffled"),
    "reshuffled-small-pool": SequencedReplacement(**SIZES, pool_size=12, sequence="reshuffled"),
    "reshuffled-across": SequencedReplacement(60, 7, pool_size=90, sequence="reshuffled"),
    "buffer": ShuffleBuffer(**SIZES, buffer_size=15),
    "buffer-uneven": ShuffleBuffer(**SIZES, buffer_size=20),
    "buffer-one": ShuffleBuffer(**SIZES, buffer_size=1),
    "buffer-most": ShuffleBuffer(**SIZES, buffer_size=58),
    "buffer-all": ShuffleBuffer(**SIZES, buffer_size=60),
    "block-shuffle": BlockShuffle(**SIZES, shard_size=5, window=15),
    "jitter": Jitter(**SIZES, shard_size=5, window=20),
    "poisson": PoissonDraws(**SIZES),
    "bins": BallsInBins(**SIZES),
    "bins-uneven": BallsInBins(60, 7),
    "stratified": Stratified(**SIZES, labels=[0] * 20 + [1] * 30 + [2] * 10),
    "weighted": WeightedDraws(**SIZES, weights=WEIGHTS),
    "repeated": RepeatedAugmentation(**SIZES, repeats=3),
    "length-grouped": LengthGrouped(**SIZES, lengths=LENGTHS, window=4),
    "paired-reversal": PairedReversal(**SIZES, block_size=20),
    "paired-reversal-uneven": PairedReversal(**SIZES, block_size=16),
    "block-reshuffling": BlockReshuffling(**SIZES, block_size=12),
}


def of_law(law: NoiseLaw) -> np.ndarray:
    """Return the covariances C(0), C(1), ... relative to white noise, from the spectrum of a law."""
    frequencies = (np.arange(2**12) + 0.5) / 2**12
    density, (where, powers) = law.continuous(frequencies), law.lines()
    turns = 2 * np.pi * np.arange(LAGS)[:, np.newaxis]
    return np.mean(density * np.cos(turns * frequencies), axis=1) + np.cos(turns * where) @ powers


def drawn(order: Order, epochs: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariances C(0), C(1), ... of draws, and their standard errors, from coincidences of samples."""
    n, b, steps = order.num_samples, order.batch_size, order.steps_per_epoch
    start = 50 * steps  # long after the start, and at the beginning of an epoch
    batches = list(order.batches(start, start + epochs * steps))
    rows = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    cells = np.bincount(rows * n + np.concatenate(batches), minlength=len(batches) * n)
    counts = cells.reshape(-1, n).astype(np.float64)
    # E[g_i g_j] is 1 or -1/(n-1). Sums are divided by B, also if a batch has another size.
    total, common = counts.sum(axis=1), []
    for lag in range(LAGS):
        one, other = slice(0, len(counts) - lag), slice(lag, None)
        same = np.einsum("ij,ij->i", counts[one], counts[other])
        common.append((n * same - total[one] * total[other])[: len(counts) - LAGS] / (n - 1) / b)
    values = np.stack(common)
    # Averages over stretches of some epochs are nearly independent.
    stretches = values[:, : values.shape[1] // (20 * steps) * 20 * steps].reshape(LAGS, -1, 20 * steps).mean(axis=2)
    return stretches.mean(axis=1), stretches.std(axis=1, ddof=1) / np.sqrt(stretches.shape[1])


@pytest.mark.parametrize("name", list(NOISE))
def test_covariances_of_draws_match_the_law(name: str) -> None:
    order = NOISE[name]
    found, error = drawn(order)
    expected = of_law(noise_law(order))
    assert (abs(found - expected) < 5.5 * error + 1e-9).all()
    assert error.max() < 0.04  # otherwise the test could not fail


@pytest.mark.parametrize("name", list(NOISE))
def test_covariance_sums_match_the_spectrum(name: str) -> None:
    law = noise_law(NOISE[name])
    for decay in (0.03, 0.4):
        ratio = 1 - decay
        frequencies = (np.arange(2**12) + 0.5) / 2**12
        density, (where, powers) = law.continuous(frequencies), law.lines()
        moving = where > 0
        turns = 2 * np.pi * np.arange(int(25 / decay))[:, np.newaxis]
        covariances = np.mean(density * np.cos(turns * frequencies), axis=1)
        covariances += np.cos(turns * where[moving]) @ powers[moving]
        expected = covariances[0] + 2 * sum(c * ratio**lag for lag, c in enumerate(covariances) if lag)
        assert law.covariance_sum(decay).real == pytest.approx(expected, rel=1e-6, abs=1e-9)


GAPS: dict[str, Order] = {
    "reshuffling": RandomReshuffling(103, 10),
    "reshuffling-dropped": RandomReshuffling(103, 10, drop_last=True),
    "reshuffling-much-dropped": RandomReshuffling(17, 6, drop_last=True),
    "flip-flop": FlipFlop(100, 10),
    "flip-flop-short": FlipFlop(103, 10),
    "flip-flop-dropped": FlipFlop(17, 6, drop_last=True),
    "shuffle-once": ShuffleOnce(103, 10),
    "independent": IndependentDraws(100, 10),
    "replacement": BatchedReplacement(100, 10),
    "srs": SequencedReplacement(4000, 10),
    "srs-small-pool": SequencedReplacement(4000, 10, pool_size=1000),
    "srs-large-pool": SequencedReplacement(4000, 10, pool_size=12_000),
}
GAPS |= {
    name: NOISE[name]
    for name in (
        *("block-shuffle", "jitter", "poisson", "bins", "stratified", "repeated", "length-grouped"),
        "block-reshuffling",
    )
}


@pytest.mark.parametrize("name", list(GAPS))
def test_gaps_match_the_law(name: str) -> None:
    order, law = GAPS[name], theory.visit_gaps(GAPS[name])
    start = 10 * order.steps_per_epoch if "srs" in name else 0
    found = diagnostics.visit_gaps(order, max(90, 8_000 // order.steps_per_epoch), start=start)
    x = np.array([0.1, 0.3, 0.5, 0.9, 1.1, 1.5, 1.9, 2.5])
    # The gaps of a sample, or of an epoch, are not independent. 0.01 is five standard errors of the worst case.
    assert found.survival(x) == pytest.approx(law.survival(x), abs=0.012)
    assert found.mean == pytest.approx(law.mean, rel=0.015)
    assert law.probabilities([0, 0.5, 1, 50]).sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [0.25, 1.0, 3.0])
def test_mean_and_variance_of_the_gaps_of_srs(k: float) -> None:
    law = theory.visit_gaps(SequencedReplacement(4000, 10, pool_size=int(4000 * k)))
    assert law.survival(0.0) == pytest.approx(1, abs=1e-9)
    grid = np.linspace(0, 40, 801)
    survival = law.survival(grid)
    assert np.all(np.diff(survival) <= 1e-12)
    assert np.trapezoid(survival, grid) == pytest.approx(law.mean, abs=2e-3)
    assert 2 * np.trapezoid(grid * survival, grid) - 1 == pytest.approx(law.variance, abs=2e-3)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (ShuffleBuffer(60, 7, buffer_size=9), "batch_size should divide num_samples"),
        (ShuffleBuffer(60, 6, buffer_size=9, shard_size=10), "shard_size should be None"),
        (BlockShuffle(60, 6, shard_size=7), "shard_size should be one for all shards"),
        (BlockShuffle(60, 6, shard_size=5, window=7), "window should be of whole shards"),
        (Stratified(60, 6, labels=[0] * 59 + [1]), "every class should have as many samples in each batch"),
        (LengthGrouped(60, 6, lengths=LENGTHS, shuffle_batches=False), "shuffle_batches should be True"),
        (RepeatedAugmentation(60, 5, repeats=3), "be a multiple of repeats"),
        (BlockReshuffling(60, 6, block_size=7), "block_size should divide num_samples"),
    ],
)
def test_an_order_without_a_law_is_refused_with_the_reason(order: Order, message: str) -> None:
    with pytest.raises(theory.NoLawError, match=message):
        noise_law(order)


def test_reshuffled_pools_have_no_lines_and_no_law_of_gaps() -> None:
    assert not len(theory.noise_spectrum(NOISE["reshuffled"], [0.1]).line_frequencies)
    with pytest.raises(theory.NoLawError, match="sequence should be fixed for a law of the gaps"):
        theory.visit_gaps(NOISE["reshuffled"])


# ---- Every registered order ----

LAWS = {
    "noise_spectrum": lambda order: theory.noise_spectrum(order, [0.01, 0.5]).continuous,
    "noise_variance": lambda order: theory.noise_variance(order, [0.1, 5.0]),
    "visit_gaps": lambda order: theory.visit_gaps(order).survival([0.0, 0.5, 3.0]),
}


def every_order() -> dict[str, Any]:
    """Return each registered order with 97 samples, which is not divisible by 8, and with 96."""
    found = {}
    for name, entry in ORDERS.items():
        found[f"{name}-97"] = build_order(name, 97, 8, **facts(name))
        even = {need: given[:96] if isinstance(given := FACTS[need], list) else given for need in entry.needs}
        found[f"{name}-96"] = build_order(name, 96, 8, **even)
    return found


EVERY_ORDER = every_order()


@pytest.mark.parametrize("asked", LAWS)
@pytest.mark.parametrize("name", EVERY_ORDER)
def test_every_order_has_a_law_or_an_error_that_names_the_measurement(name: str, asked: str) -> None:
    order = EVERY_ORDER[name]
    kind = theory.visit_gaps if asked == "visit_gaps" else noise_law
    try:
        kind(order)
    except theory.NoLawError:
        measured = "visit_gaps" if asked == "visit_gaps" else "noise_spectrum"
        with pytest.raises(theory.NoLawError, match=rf": measure it with replenish.diagnostics.{measured}\(order\)$"):
            LAWS[asked](order)
        getattr(diagnostics, measured)(order, epochs=3)
    else:
        values = LAWS[asked](order)
        assert np.isfinite(values).all()
        assert (values >= -1e-12).all()


@pytest.mark.parametrize("name", EVERY_ORDER)
def test_the_power_of_a_law_matches_the_draws(name: str) -> None:
    """The variance of one step equals the integral of the spectrum plus its lines."""
    order = EVERY_ORDER[name]
    try:
        law = theory.noise_spectrum(order, (np.arange(4000) + 0.5) / 8000)
    except theory.NoLawError:
        return
    draws = read_draws(order, 60, start=40 * order.steps_per_epoch)
    drawn = batch_means(draws, random_signs(order.num_samples, 128, seed=0))
    if isinstance(order, (PoissonDraws, BallsInBins)):  # the law is about sums over a batch divided by B
        drawn *= draws.sizes[:, None] / order.batch_size
    power = order.batch_size * drawn.var(axis=0).mean()
    moving = law.line_frequencies > 0
    assert power == pytest.approx(law.continuous.mean() + law.line_powers[moving].sum(), rel=0.12)


# ---- Simulated SGD ----


@pytest.mark.parametrize(("momentum", "kappa"), [(0.0, 3), (0.9, 1.0), (0.5, 60.0)])
def test_variance_of_simulated_sgd(momentum: float, kappa: float) -> None:
    """Simulate 64 weights with different gradients. Their spread gives the error of the mean."""
    n, b, weights, steps = 400, 10, 64, 8000
    generator = np.random.Generator(np.random.Philox(7))
    gradients = generator.standard_normal((n, weights))
    gradients -= gradients.mean(axis=0)
    gradients /= gradients.std(axis=0)
    step = kappa * (1 - momentum) * b / n
    white = step * (1 + momentum) / ((1 - momentum) * (2 * (1 + momentum) - step)) / b
    for order in (
        SequencedReplacement(n, b, pool_size=200),
        RandomReshuffling(n, b),
        FlipFlop(n, b),
        ShuffleOnce(n, b),
    ):
        weight, before = np.zeros(weights), np.zeros(weights)
        squares = np.zeros(weights)
        for number, batch in enumerate(order.batches(0, steps)):
            noise = gradients[batch].mean(axis=0)
            weight, before = (1 + momentum - step) * weight - momentum * before - step * noise, weight
            if number >= 1000:
                squares += weight**2
        ratios = squares / (steps - 1000) / white
        error = ratios.std() / np.sqrt(weights)
        assert abs(ratios.mean() - theory.noise_variance(order, kappa, momentum)) < 5 * error, order


# ---- Mixtures, and SRS over sorted data ----


@pytest.mark.parametrize("orders", [None, "srs", "independent"])
def test_a_mixtures_spectrum_follows_from_its_sources(orders: str | None) -> None:
    own = {
        None: None,
        "srs": [SequencedReplacement(1200, 10), None],
        "independent": [None, IndependentDraws(300, 10)],
    }[orders]
    mixture = Mixture([1200, 300], [3, 2], 20, orders=own)
    found = diagnostics.noise_spectrum(mixture, epochs=40, start=2000, numbers=128).in_bands(15)
    smeared = _smeared(mixture, found.steps, 15)
    assert (np.abs(found.density - smeared) < 5 * found.error + 0.05).all()


def _smeared(mixture: Mixture, steps: int, bands: int) -> np.ndarray:
    frequencies = np.arange(1, steps // 2 + 1) / steps
    density = expected_density(noise_law(mixture), steps)
    return MeasuredSpectrum(frequencies, density, np.zeros_like(density), steps).in_bands(bands).density


def test_a_mixtures_variance_is_the_mean_of_its_sources() -> None:
    one = theory.noise_variance(Mixture([1000], [1], 10), [0.3, 1, 3])
    assert one == pytest.approx(theory.noise_variance(RandomReshuffling(1000, 10), [0.3, 1, 3]))
    # Kappa is per epoch of the mixture. The epochs of the sources, N_i / (w_i B) steps, are 1.8 and 0.2 times as long.
    both = theory.noise_variance(Mixture([9000, 1000], [1, 1], 10), 1.0)
    each = theory.noise_variance(RandomReshuffling(10_000, 10), [1.8, 0.2])
    assert both == pytest.approx(each.mean(), rel=1e-3)
    with pytest.raises(theory.NoLawError, match="stages should be left out"):
        theory.noise_variance(Mixture([100, 200], [1, 1], 10, stages=[(5, [2, 1])]), 1.0)
    with pytest.raises(theory.NoLawError, match="each source should have two batches' parts"):
        theory.noise_variance(Mixture([100, 5], [1, 1], 10), 1.0)


def test_sorted_data_under_the_identity_have_more_noise_than_the_average() -> None:
    n, b, classes = 2000, 20, 10
    order = SequencedReplacement(n, b, sequence="identity")
    numbers = np.eye(classes)[np.arange(n) * classes // n]
    law = theory.noise_variance(order, [0.3, 1.0], values=numbers)
    assert law.round(2).tolist() == [0.4, 1.07]
    scaled = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    means = np.concatenate([scaled[rows].mean(axis=1) for rows in order.blocks(20 * n // b, 3000 * n // b)])
    for kappa, expected in zip((0.3, 1.0), law, strict=True):
        step = kappa * b / n
        weight = lfilter([1.0], [1.0, step - 1], means, axis=0)[10 * n // b :]
        white = 1 / b / (step * (2 - step))
        assert (weight**2).mean() / white == pytest.approx(expected, rel=0.04)


def test_a_random_sequence_has_the_average_noise() -> None:
    order = SequencedReplacement(2000, 20)
    labels = np.repeat(np.arange(10), 200)
    numbers = np.random.default_rng(0).normal(size=(2000, 60))
    assert theory.noise_variance(order, 1.0, values=numbers) == pytest.approx(
        theory.noise_variance(order, 1.0), abs=0.02
    )
    assert theory.sorted_data_warning(order, labels) is None
    assert "is 1.07 of independent" in str(
        theory.sorted_data_warning(SequencedReplacement(2000, 20, sequence="identity"), labels)
    )
    assert theory.sorted_data_warning(RandomReshuffling(2000, 20), labels) is None
    assert theory.sorted_data_warning(order, np.zeros(2000)) is None


def test_the_lab_warns_with_the_number() -> None:
    from replenish.lab import RunConfig

    config = RunConfig(order="srs", sequence="identity", batch_size=20, epochs=2)
    with pytest.warns(UserWarning, match="is 1.07 of independent draws' for what differs between classes, not 0.50"):
        config.build_order(2000, np.repeat(np.arange(10), 200))
    config.build_order(2000, np.random.default_rng(0).integers(0, 10, 2000))


def test_values_are_for_fixed_sequences() -> None:
    with pytest.raises(theory.NoLawError, match="values should be left out, unless order is SRS"):
        theory.noise_variance(RandomReshuffling(100, 10), 1.0, values=np.arange(100))
    with pytest.raises(ValueError, match="values should be 100 finite numbers that differ"):
        theory.noise_variance(SequencedReplacement(100, 10), 1.0, values=np.ones(100))
