"""Measurements of draws, spectra, gaps and mixing, against slow counts and the theory."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, islice, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from contracts import CASES
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
from replenish.diagnostics import (
    PARTS_PER_EPOCH,
    measure,
    measure_mixing,
    noise_spectrum,
    plot,
    plot_noise_spectra,
    plot_visit_gaps,
    residence_quantile,
    visit_gaps,
)
from replenish.draws import DistinctDraws
from replenish.measure.spectrum import expected_density
from replenish.palette import look_of
from replenish.stream import PooledStream
from replenish.theory.order_laws import noise_law
from replenish.torch import OrderBatchSampler

# ---- Draws ----


@pytest.mark.parametrize("name", list(CASES))
def test_equals_a_slow_count(name: str) -> None:
    """Compute everything again with dicts and loops."""
    order, epochs, start = CASES[name](), 4, 7
    found = measure(order, epochs, start=start)
    per_epoch = order.steps_per_epoch
    batches = [batch.tolist() for batch in order.batches(start, start + epochs * per_epoch)]
    totals: Counter[int] = Counter()
    for epoch in range(epochs):
        drawn = Counter(index for batch in batches[epoch * per_epoch : (epoch + 1) * per_epoch] for index in batch)
        counts = [drawn[index] for index in range(order.num_samples)]
        totals += drawn
        assert found.unseen[epoch] == pytest.approx(counts.count(0) / order.num_samples)
        assert found.never_seen[epoch] == pytest.approx(1 - len(totals) / order.num_samples)
        assert (found.smallest[epoch], found.largest[epoch]) == (min(counts), max(counts))
        assert found.count_spread[epoch] == pytest.approx(np.var([totals[index] for index in range(order.num_samples)]))
    assert found.counts.tolist() == [totals[index] for index in range(order.num_samples)]

    pairs = sum(a == b for batch in batches for a, b in combinations(batch, 2))
    assert found.equal_pairs == pytest.approx(pairs / len(batches))
    gaps: list[int] = []
    for index in range(order.num_samples):
        steps = [step for step, batch in enumerate(batches) if index in batch]
        gaps += [later - earlier for earlier, later in pairwise(steps)]
    parts = Counter(min(gap * PARTS_PER_EPOCH // per_epoch, PARTS_PER_EPOCH * epochs) for gap in gaps)
    assert {part: count for part, count in enumerate(found.gaps.tolist()) if count} == parts
    assert found.mean_gap == pytest.approx(np.mean(gaps) / per_epoch)
    assert found.repeats == pytest.approx(gaps.count(1) / len(gaps))


def test_an_order_of_your_own_is_measured_equally() -> None:
    class Wrapped:
        """An order with only the protocol."""

        def __init__(self, order: Order) -> None:
            self.num_samples, self.batch_size = order.num_samples, order.batch_size
            self.steps_per_epoch, self.batch, self.batches = order.steps_per_epoch, order.batch, order.batches
            self.effective_epoch, self.config = order.effective_epoch, order.config

    order = RandomReshuffling(1003, 16)
    plain, wrapped = measure(order, 5), measure(Wrapped(order), 5)
    assert (plain.gaps == wrapped.gaps).all()
    assert (plain.counts == wrapped.counts).all()


def test_the_age_of_a_slot_is_the_number_of_draws_it_escaped() -> None:
    """Compute the ages after one epoch from the slots of its draws."""
    order = SequencedReplacement(40, 10, seed=3)  # an epoch is 4 steps
    pool = measure(order, 1).pool
    assert pool is not None
    drawn = [set(slots) for slots in DistinctDraws(40, 10, 3).block(0)[:4].tolist()]
    ages = [next((age for age, slots in enumerate(reversed(drawn)) if slot in slots), 4) for slot in range(40)]
    assert pool.mean_age == pytest.approx(np.mean(ages) / 4)
    assert pool.ages.tolist() == np.bincount(np.array(ages) * PARTS_PER_EPOCH // 4).tolist()


def test_without_gaps_the_mean_is_nan() -> None:
    found = measure(RandomReshuffling(100, 10), 1)
    assert found.pool is None
    assert found.gaps.sum() == 0
    assert np.isnan(found.mean_gap)
    assert np.isnan(found.repeats)


def test_classes() -> None:
    labels = np.arange(10_000) // 1000
    found = {
        sequence: measure(SequencedReplacement(10_000, 50, sequence=sequence), 20, start=2000, labels=labels).classes
        for sequence in ("identity", "shuffled")
    }
    assert found["shuffled"].spread == pytest.approx(1, abs=0.05)
    assert found["identity"].spread > 1.2
    assert found["identity"].rates[:, 0].max() > 1.4
    assert found["identity"].rates[:, 0].min() < 0.7
    assert found["shuffled"].rates == pytest.approx(1, abs=0.2)


def test_plot_draws_what_was_measured() -> None:
    labels = np.arange(500) % 5
    orders = {"SRS": SequencedReplacement(500, 10), "reshuffling": RandomReshuffling(500, 10)}
    found = {name: measure(order, 4, labels=labels) for name, order in orders.items()}
    figure = plot(found)
    assert len(figure.axes) == 4
    line = figure.axes[0].get_lines()[0]
    assert line.get_label() == "SRS"
    assert line.get_color() == look_of("srs").light
    assert line.get_ydata().tolist() == pytest.approx((100 * found["SRS"].unseen).tolist())
    assert len(plot({"SRS": measure(orders["SRS"], 2)}).axes) == 3
    with pytest.raises(ValueError, match="at least one measurement"):
        plot({})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs should be at least 1, but got 0"),
        ({"epochs": 1.5}, TypeError, "epochs should be an int, but got 1.5"),
        ({"start": -1}, ValueError, "start should be at least 0, but got -1"),
        ({"labels": [0, 1]}, ValueError, "labels should have one entry for each of the 100 samples"),
        ({"labels": [0.5] * 100}, TypeError, "labels should be integers"),
        ({"labels": [-1] * 100}, ValueError, "an entry of labels should be at least 0, but got -1"),
    ],
)
def test_bad_input_of_measure(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        measure(RandomReshuffling(100, 10), **options)  # type: ignore[arg-type]


def test_far_steps_are_measured() -> None:
    """Positions beyond 2**62 would overflow 64-bit integers."""
    order = SequencedReplacement(100, 64)
    for start in (2**59, 2**62 - 100):
        pool = measure(order, 10, start=start).pool
        assert pool is not None
        assert (pool.ages.sum(), pool.ages[0]) == (100, 64)  # the slots of the last draw have escaped none
        assert 0.1 < pool.mean_age < 1
    with pytest.raises(ValueError, match=r"start \+ epochs \* steps_per_epoch should be at most"):
        measure(order, 10, start=2**62)


# ---- Spectra and gaps of orders, loaders and lists ----


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
def test_measured_spectra_match_the_laws(order: Order) -> None:
    """The error of the mean over signs is known. The randomness of the order adds about as much."""
    epochs = 12  # a whole number of flip-flop's pairs
    found = noise_spectrum(order, epochs, start=20 * order.steps_per_epoch, numbers=256)
    expected = expected_density(noise_law(order), found.steps)
    assert found.frequencies[-1] == 0.5 if found.steps % 2 == 0 else found.frequencies[-1] < 0.5
    # A periodogram at a harmonic of the epoch depends on few random numbers, so bands are compared, not points.
    edges = np.unique(np.geomspace(1, len(expected) + 1, 13).astype(int)) - 1
    for first, last in pairwise(edges):
        error = np.sqrt(np.sum(found.error[first:last] ** 2) + np.sum((0.06 * expected[first:last]) ** 2)) / (
            last - first
        )
        difference = found.density[first:last].mean() - expected[first:last].mean()
        assert abs(difference) < 5 * error + 1e-6, (first, last, difference, error)


def test_all_kinds_of_sources_give_the_same() -> None:
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


def test_measured_gaps_are_in_steps() -> None:
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
    # An order always has the same colour. Other lines have another one.
    assert lines[0].get_color() == lines[1].get_color() == look_of("reshuffling").light
    assert lines[2].get_color() not in [look_of(name).light for name in ("reshuffling", "srs")]
    figure = plot_visit_gaps({"measured": visit_gaps(order, 20), "law": theory.visit_gaps(order)})
    assert len(figure.axes[0].get_lines()) == 2
    assert figure.axes[0].get_ylim()[0] == 0
    assert figure.axes[0].get_ylim()[1] >= 100  # per cent: all gaps are longer than 0
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
        ([[0, 5]], {"start": 3}, ValueError, "start should be 0 except for an Order"),
        (DataLoader(Stream()), {}, TypeError, "over an iterable dataset, which has none: replenish.audit"),
        (7, {}, TypeError, "source should be an Order, a loader or an iterable"),
    ],
)
def test_bad_input_of_gaps(source: object, options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        visit_gaps(source, 1, **options)  # type: ignore[arg-type]


# ---- Mixing, for the choice of a pool ----


SORTED = np.repeat(np.arange(10), 400)


@pytest.mark.parametrize(("pool_size", "batch_size"), [(100, 1), (100, 7), (10_000, 64), (8, 8), (9, 8)])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.9, 0.99, 0.999])
def test_residence_quantile_matches_the_law(pool_size: int, batch_size: int, probability: float) -> None:
    steps = residence_quantile(pool_size, batch_size, probability)
    law = theory.residence_probability(pool_size, batch_size, np.arange(1, steps + 1))
    assert law.sum() >= probability - 1e-9
    assert law[:-1].sum() < probability


def test_mixing_lies_between_its_extremes_and_grows_with_the_pool() -> None:
    found = measure_mixing(SORTED, 20, [20, 100, 400, 1600, 4000, 40_000], epochs=10)
    excess = [row.excess for row in found]
    assert excess == sorted(excess, reverse=True)
    assert excess[0] > 0.9
    assert abs(excess[-1]) < 0.05
    assert [row.labels for row in found] == sorted(row.labels for row in found)
    assert found[-1].labels == pytest.approx(found[-1].shuffled_labels, rel=0.02)
    assert found[0].unmixed_distance == pytest.approx(0.9)
    assert [row.mean_stay for row in found][:2] == [1.0, 5.0]


def test_it_measures_the_batches_of_the_stream() -> None:
    (row,) = measure_mixing(SORTED, 20, [300], seed=4)
    stream = PooledStream(SORTED, batch_size=20, pool_size=300, seed=4)
    batches = list(islice(stream, row.stay_99, row.stay_99 + 200))
    assert row.labels == pytest.approx(np.mean([len(set(batch)) for batch in batches]))


def test_string_labels_and_a_single_label() -> None:
    (words,) = measure_mixing(["a"] * 50 + ["b"] * 50, 5, [10])
    (numbers,) = measure_mixing([0] * 50 + [1] * 50, 5, [10])
    assert words == numbers
    (one,) = measure_mixing([3] * 20, 5, [10])
    assert one.excess == 0
    assert measure_mixing([0, 1, 2], 5, [10])[0].pool_size == 10  # a source shorter than the batch


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 5, [10]), ValueError, "labels should be a list of at least one label"),
        (([[1, 2]], 5, [10]), ValueError, "labels should be a list"),
        (([0.5, 1.5], 5, [10]), TypeError, "labels should be integers or strings, but got float64"),
        (([0, 1], 5, []), ValueError, "pool_sizes should have at least one size"),
        (([0, 1], 5, [True]), TypeError, "each of pool_sizes should be an int"),
        (([0, 1], 5, 20), TypeError, r"pool_sizes should be a list of pool sizes, but got 20; give \[20\]"),
        (([0, 1], 5, [4]), ValueError, "batch_size should be at most pool_size"),
        (([0, 1], 0, [4]), ValueError, "batch_size should be at least 1"),
    ],
)
def test_bad_input_of_mixing(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        measure_mixing(*arguments)
