"""The laws of the further orders against what the orders draw."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from contracts import FACTS, facts

from replenish import (
    BallsInBins,
    BlockReshuffling,
    BlockShuffle,
    FlipFlop,
    Jitter,
    LengthGrouped,
    Order,
    PairedReversal,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    Stratified,
    WeightedDraws,
    diagnostics,
    theory,
)
from replenish.measure.reading import read_draws
from replenish.measure.spectrum import batch_means, random_signs
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
    """Return C(0), C(1), ... relative to white noise, from the spectrum."""
    frequencies = (np.arange(2**12) + 0.5) / 2**12
    density, (where, powers) = law.continuous(frequencies), law.lines()
    turns = 2 * np.pi * np.arange(LAGS)[:, np.newaxis]
    return np.mean(density * np.cos(turns * frequencies), axis=1) + np.cos(turns * where) @ powers


def drawn(order: Order, epochs: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    """Return C(0), C(1), ... as drawn, and their standard errors, from coincidences of the samples of two steps."""
    n, b, steps = order.num_samples, order.batch_size, order.steps_per_epoch
    start = 50 * steps  # long after the start, and at the beginning of an epoch
    batches = list(order.batches(start, start + epochs * steps))
    rows = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    cells = np.bincount(rows * n + np.concatenate(batches), minlength=len(batches) * n)
    counts = cells.reshape(-1, n).astype(np.float64)
    # E[g_i g_j] is 1 or -1/(n-1); a sum over B, also where a batch has another size.
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
def test_covariances_are_those_of_the_law(name: str) -> None:
    order = NOISE[name]
    found, error = drawn(order)
    expected = of_law(noise_law(order))
    assert (abs(found - expected) < 5.5 * error + 1e-9).all()
    assert error.max() < 0.04  # else nothing could fail


@pytest.mark.parametrize("name", list(NOISE))
def test_sums_are_the_integrals(name: str) -> None:
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


def gaps_of(order: Order, steps: int) -> np.ndarray:
    seen: defaultdict[int, list[int]] = defaultdict(list)
    for step, batch in enumerate(order.batches(0, steps)):
        for sample in set(batch.tolist()):
            seen[sample].append(step)
    return np.array([after - before for at in seen.values() for before, after in pairwise(at)])


GAPS = ["block-shuffle", "jitter", "poisson", "bins", "stratified", "repeated", "length-grouped", "block-reshuffling"]


@pytest.mark.parametrize("name", GAPS)
def test_gaps_are_those_of_the_law(name: str) -> None:
    order, law = NOISE[name], theory.visit_gaps(NOISE[name])
    gaps = gaps_of(order, 8_000)
    x = np.array([0.1, 0.3, 0.5, 0.9, 1.1, 1.5, 1.9, 2.5])
    assert np.mean(gaps[:, None] > np.floor(x * N / B + 1e-9), axis=0) == pytest.approx(law.survival(x), abs=0.012)
    assert gaps.mean() * B / N == pytest.approx(law.mean, rel=0.01)


def test_one_block_is_flip_flop() -> None:
    frequencies = np.linspace(0, 0.5, 50)
    one, two = (theory.noise_spectrum(kind(**SIZES), frequencies) for kind in (PairedReversal, FlipFlop))
    np.testing.assert_allclose(one.continuous, two.continuous, atol=1e-12)


def test_a_buffer_lies_between_shuffle_once_and_reshuffling() -> None:
    reshuffling = theory.noise_variance(RandomReshuffling(6_000, 60), 1.0)
    variances = [theory.noise_variance(ShuffleBuffer(6_000, 60, buffer_size=size), 1.0) for size in (1, 600, 5_990)]
    assert variances[0] < variances[1] < variances[2]
    assert variances[2] == pytest.approx(reshuffling, rel=1e-3)


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
def test_where_there_is_no_law_it_says_why(order: Order, message: str) -> None:
    with pytest.raises(theory.NoLawError, match=message):
        noise_law(order)


def test_reshuffled_pools_have_no_lines_and_no_law_of_gaps() -> None:
    assert not len(theory.noise_spectrum(NOISE["reshuffled"], [0.1]).line_frequencies)
    with pytest.raises(theory.NoLawError, match="sequence should be fixed for a law of the gaps"):
        theory.visit_gaps(NOISE["reshuffled"])


# ---- Every order of the list ----

LAWS = {
    "noise_spectrum": lambda order: theory.noise_spectrum(order, [0.01, 0.5]).continuous,
    "noise_variance": lambda order: theory.noise_variance(order, [0.1, 5.0]),
    "visit_gaps": lambda order: theory.visit_gaps(order).survival([0.0, 0.5, 3.0]),
}


def every_order() -> dict[str, Any]:
    """Return each order of the list with 97 samples, which 8 does not divide, and with 96."""
    found = {}
    for name, entry in ORDERS.items():
        found[f"{name}-97"] = build_order(name, 97, 8, **facts(name))
        even = {need: given[:96] if isinstance(given := FACTS[need], list) else given for need in entry.needs}
        found[f"{name}-96"] = build_order(name, 96, 8, **even)
    return found


EVERY_ORDER = every_order()


@pytest.mark.parametrize("asked", LAWS)
@pytest.mark.parametrize("name", EVERY_ORDER)
def test_every_order_has_a_law_or_says_how_to_measure(name: str, asked: str) -> None:
    order = EVERY_ORDER[name]
    kind = theory.visit_gaps if asked == "visit_gaps" else noise_law
    try:
        kind(order)
    except theory.NoLawError:
        measured = "visit_gaps" if asked == "visit_gaps" else "noise_spectrum"
        with pytest.raises(theory.NoLawError, match=rf": measure it with replenish.diagnostics.{measured}\(order\)$"):
            LAWS[asked](order)
        getattr(diagnostics, measured)(order, epochs=3)  # which it can
    else:
        values = LAWS[asked](order)
        assert np.isfinite(values).all()
        assert (values >= -1e-12).all()


@pytest.mark.parametrize("name", EVERY_ORDER)
def test_the_power_of_a_law_is_what_is_drawn(name: str) -> None:
    """The variance of one step: the integral of the spectrum, and its lines."""
    order = EVERY_ORDER[name]
    try:
        law = theory.noise_spectrum(order, (np.arange(4000) + 0.5) / 8000)
    except theory.NoLawError:
        return
    draws = read_draws(order, 60, start=40 * order.steps_per_epoch)
    drawn = batch_means(draws, random_signs(order.num_samples, 128, seed=0))
    if isinstance(order, (PoissonDraws, BallsInBins)):  # the law is of sums over a batch, over B
        drawn *= draws.sizes[:, None] / order.batch_size
    power = order.batch_size * drawn.var(axis=0).mean()
    moving = law.line_frequencies > 0
    assert power == pytest.approx(law.continuous.mean() + law.line_powers[moving].sum(), rel=0.12)


def test_empty_batches_make_no_noise() -> None:
    order = PoissonDraws(100, 1)
    assert 0 in {len(batch) for batch in order.batches(stop=100)}
    found = diagnostics.noise_spectrum(order, epochs=20)
    assert found.density.mean() == pytest.approx(1 - np.exp(-1), abs=0.25)  # of the steps that draw any
