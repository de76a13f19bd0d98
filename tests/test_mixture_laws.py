"""The noise of mixtures, and of SRS over data that are sorted: the laws against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from replenish import IndependentDraws, Mixture, RandomReshuffling, SequencedReplacement, diagnostics, theory
from replenish.theory.order_laws import noise_law


@pytest.mark.parametrize("orders", [None, "srs", "independent"])
def test_a_mixtures_spectrum_is_that_of_its_sources(orders: str | None) -> None:
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
    from replenish.measure.spectrum import MeasuredSpectrum, expected_density

    frequencies = np.arange(1, steps // 2 + 1) / steps
    density = expected_density(noise_law(mixture), steps)
    return MeasuredSpectrum(frequencies, density, np.zeros_like(density), steps).in_bands(bands).density


def test_a_mixtures_variance_lies_between_those_of_its_sources() -> None:
    one = theory.noise_variance(Mixture([1000], [1], 10), [0.3, 1, 3])
    assert one == pytest.approx(theory.noise_variance(RandomReshuffling(1000, 10), [0.3, 1, 3]))
    # Kappa counts epochs of the mixture; the epochs of the sources, N_i / (w_i B) steps, are 1.8 and 0.2 of these.
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


def test_a_random_sequence_has_the_average() -> None:
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
