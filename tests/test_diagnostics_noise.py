"""Spectra and gaps that are measured agree with the laws, for orders, loaders and lists alike."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from replenish import (
    BatchedReplacement,
    FlipFlop,
    IndependentDraws,
    Order,
    RandomReshuffling,
    SequencedReplacement,
    ShuffleOnce,
    theory,
)
from replenish.diagnostics import noise_spectrum, plot_noise_spectra, plot_visit_gaps, visit_gaps
from replenish.measure.spectrum import expected_density
from replenish.palette import look_of
from replenish.theory.order_laws import noise_law
from replenish.torch import OrderBatchSampler

ORDERS = [
    SequencedReplacement(1200, 10),
    SequencedReplacement(1200, 10, pool_size=300),
    SequencedReplacement(1205, 10, pool_size=3000),
    RandomReshuffling(1200, 10),
    RandomReshuffling(1207, 10),
    RandomReshuffling(1207, 10, drop_last=True),
    FlipFlop(1200, 10),
    ShuffleOnce(1200, 10),
    IndependentDraws(1200, 10),
    BatchedReplacement(1200, 300),
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_measured_spectra_are_the_laws(order: Order) -> None:
    """The error of a mean over signs is known; the order's own luck adds about as much."""
    epochs = 12  # a whole number of flip-flop's pairs
    found = noise_spectrum(order, epochs, start=20 * order.steps_per_epoch, numbers=256)
    expected = expected_density(noise_law(order), found.steps)
    assert found.frequencies[-1] == 0.5 if found.steps % 2 == 0 else found.frequencies[-1] < 0.5
    # Periodograms at epochs' harmonics know only a few numbers of the order each: bands are compared, not points.
    edges = np.unique(np.geomspace(1, len(expected) + 1, 13).astype(int)) - 1
    for first, last in pairwise(edges):
        error = np.sqrt(np.sum(found.error[first:last] ** 2) + np.sum((0.06 * expected[first:last]) ** 2)) / (
            last - first
        )
        difference = found.density[first:last].mean() - expected[first:last].mean()
        assert abs(difference) < 5 * error + 1e-6, (first, last, difference, error)


def test_any_source_is_read_alike() -> None:
    order = RandomReshuffling(120, 10, seed=3)
    data = TensorDataset(torch.arange(120))
    batches = [batch.tolist() for batch in order.batches(0, 60)]
    sources = [
        order,
        DataLoader(data, batch_sampler=OrderBatchSampler(order)),
        OrderBatchSampler(order),
        iter(batches),
    ]
    spectra = [noise_spectrum(source, 5, num_samples=120) for source in sources]
    gaps = [visit_gaps(source, 5) for source in [order, DataLoader(data, batch_sampler=OrderBatchSampler(order))]]
    assert all((found.density == spectra[0].density).all() for found in spectra)
    assert gaps[0].counts.tolist() == gaps[1].counts.tolist()
    assert noise_spectrum(batches, 2).steps == 120


def test_gaps_that_are_measured_are_counted_in_steps() -> None:
    found = visit_gaps([[0, 1], [0, 0], [2, 1], [0, 2]], 1)
    assert found.counts.tolist() == [0, 2, 2]  # 0: 0-1-3, 1: 0-2, 2: 2-3
    assert found.mean * 1.5 == pytest.approx(6 / 4)  # three samples, batches of two: an epoch is 1.5 steps
    assert found.survival([0, 1 / 1.5, 2 / 1.5, 99]).tolist() == [1, 0.5, 0, 0]
    assert np.isnan(visit_gaps([[0], [1]], 1).mean)


def test_pictures_show_measurements_and_laws() -> None:
    order = RandomReshuffling(500, 10)
    found = noise_spectrum(order, 4)
    law = theory.noise_spectrum(order, found.frequencies)
    figure = plot_noise_spectra({"reshuffling, measured": found, "reshuffling": law, "something": law}, 50)
    lines = figure.axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["reshuffling, measured", "reshuffling", "something"]
    assert lines[1].get_xdata()[0] == pytest.approx(0.25)
    assert [line.get_linestyle() for line in lines] == ["None", "-", "-"]
    # An order has its one colour, also here; what is no order has another.
    assert lines[0].get_color() == lines[1].get_color() == look_of("reshuffling").light
    assert lines[2].get_color() not in [look_of(name).light for name in ("reshuffling", "srs")]
    figure = plot_visit_gaps({"measured": visit_gaps(order, 20), "law": theory.visit_gaps(order)})
    assert len(figure.axes[0].get_lines()) == 2
    assert figure.axes[0].get_ylim()[0] == 0
    assert figure.axes[0].get_ylim()[1] >= 100  # per cent: all gaps are longer than nothing
    with pytest.raises(ValueError, match="at least one spectrum"):
        plot_noise_spectra({}, 50)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(10))


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ([["a"]], {}, TypeError, r"each batch should be a list of indices, but got \['a'\]"),
        ([], {}, ValueError, "at least one batch, but got none"),
        ([[0, -1]], {}, ValueError, "should not be negative, but got -1"),
        ([[0, 5]], {"num_samples": 5}, ValueError, "below num_samples = 5, but got 5"),
        ([[0, 5]], {"start": 3}, ValueError, "start should be 0 for anything but an Order"),
        (DataLoader(Stream()), {}, TypeError, "over an iterable dataset, which has none: replenish.audit"),
        (7, {}, TypeError, "source should be an Order, a loader or an iterable"),
    ],
)
def test_bad_input(source: object, options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        visit_gaps(source, 1, **options)  # type: ignore[arg-type]


def test_torch_is_not_needed() -> None:
    code = "import sys\nfrom replenish import diagnostics\ndiagnostics.noise_spectrum([[0, 1], [2, 3]], 3)\n"
    subprocess.run([sys.executable, "-c", code + "assert 'torch' not in sys.modules"], check=True)
