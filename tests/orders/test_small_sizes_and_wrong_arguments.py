"""Corner cases of the core that were once wrong, slow or silent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from replenish import (
    IndependentDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    diagnostics,
    theory,
)
from replenish.orders import order_from_config, padding_share, shard_opens


def test_a_wrong_order_is_named() -> None:
    for call in (
        lambda: padding_share([1], [1]),  # type: ignore[arg-type]
        lambda: shard_opens([1], 5, open_shards=2),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="order should be an Order of replenish, but got a list"):
            call()
    with pytest.raises(TypeError, match="config should be a dict that config.. returned, but got a list"):
        order_from_config([1])  # type: ignore[arg-type]


@pytest.mark.parametrize("measure", [diagnostics.noise_spectrum, diagnostics.visit_gaps])
def test_another_number_of_samples_than_the_orders_is_refused(measure) -> None:  # type: ignore[no-untyped-def]
    order = RandomReshuffling(40, 4)
    measure(order, num_samples=40)
    with pytest.raises(ValueError, match="num_samples should be left out for an order, which has 40, but got 50"):
        measure(order, num_samples=50)


@pytest.mark.parametrize("order", [SequencedReplacement(40, 4), RandomReshuffling(40, 4), IndependentDraws(40, 4)])
def test_survival_wants_numbers(order) -> None:  # type: ignore[no-untyped-def]
    for law in (theory.visit_gaps(order), diagnostics.visit_gaps(order)):
        with pytest.raises(TypeError, match="epochs should be a real number, but got None"):
            law.survival(None)
        with pytest.raises(ValueError, match="epochs should be at least 0 and finite, but got nan"):
            law.survival(float("nan"))
        with pytest.raises(ValueError, match="each epochs should be at least 0 and finite, but got -1"):
            law.survival([0.5, -1.0])


@pytest.mark.parametrize("num_samples", [2, 3, 5])
def test_a_measured_spectrum_of_few_samples_is_not_biased(num_samples: int) -> None:
    """A column of equal signs has no noise. At N = 2 that once halved the power."""
    found = diagnostics.noise_spectrum(IndependentDraws(num_samples, 1), epochs=4000 // num_samples, numbers=200)
    assert found.density.mean() == pytest.approx(1, abs=0.05)


def test_the_limit_of_unseen_samples_for_any_pool() -> None:
    for k in (0.999999, 1.0, 1.000001, 3.0):  # a direct sum below 1, a series from 1 on
        direct = _unseen_by_direct_sum(k)
        assert theory.limit_unseen_fraction(k) == pytest.approx(direct, rel=1e-12)
    assert theory.limit_unseen_fraction(1e9) == pytest.approx(1 / math.e, rel=1e-6)  # the direct sum would never end


def _unseen_by_direct_sum(k: float) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(64)
    u = (nodes + 1) / 2
    logs = -u / k + sum(np.log1p(np.exp(-(u + j) / k) * math.expm1(-1 / k)) for j in range(int(45 * k) + 1))
    return float(weights @ np.exp(logs)) / 2


def test_many_repeats_need_little_memory() -> None:
    """A table of repeats x batch_size would have 10**10 entries."""
    order = RepeatedAugmentation(100_000, 100_000, repeats=100_000)
    assert len(set(order.batch(0).tolist())) == 1
    assert len(set(RepeatedAugmentation(9, 5, repeats=9).batch(0).tolist())) == 1
