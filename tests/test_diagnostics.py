"""What is measured is what was drawn, and it agrees with the theory."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from contracts import CASES

from replenish import Order, RandomReshuffling, SequencedReplacement
from replenish.diagnostics import PARTS_PER_EPOCH, measure, plot
from replenish.draws import DistinctDraws
from replenish.palette import look_of


@pytest.mark.parametrize("name", list(CASES))
def test_equals_a_slow_count(name: str) -> None:
    """Everything again, with dicts and loops."""
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


def test_an_order_of_the_users_own_is_measured_alike() -> None:
    class Wrapped:
        """The protocol and nothing more."""

        def __init__(self, order: Order) -> None:
            self.num_samples, self.batch_size = order.num_samples, order.batch_size
            self.steps_per_epoch, self.batch, self.batches = order.steps_per_epoch, order.batch, order.batches
            self.effective_epoch, self.config = order.effective_epoch, order.config

    order = RandomReshuffling(1003, 16)
    plain, wrapped = measure(order, 5), measure(Wrapped(order), 5)
    assert (plain.gaps == wrapped.gaps).all()
    assert (plain.counts == wrapped.counts).all()


def test_the_age_of_the_pool_is_counted_in_draws_escaped() -> None:
    """One step after the start: B slots are new, the others have escaped the one draw."""
    order = SequencedReplacement(40, 10, seed=3)  # an epoch is 4 steps
    pool = measure(order, 1).pool
    assert pool is not None
    drawn = [set(slots) for slots in DistinctDraws(40, 10, 3).block(0)[:4].tolist()]
    ages = [next((age for age, slots in enumerate(reversed(drawn)) if slot in slots), 4) for slot in range(40)]
    assert pool.mean_age == pytest.approx(np.mean(ages) / 4)
    assert pool.ages.tolist() == np.bincount(np.array(ages) * PARTS_PER_EPOCH // 4).tolist()


def test_no_gap_is_no_number() -> None:
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
        ({"labels": [0, 1]}, ValueError, "labels should have one class for each of the 100 samples"),
        ({"labels": [0.5] * 100}, TypeError, "labels should be integers"),
        ({"labels": [-1] * 100}, ValueError, "labels should not be negative, but got -1"),
    ],
)
def test_bad_input(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        measure(RandomReshuffling(100, 10), **options)  # type: ignore[arg-type]


def test_an_order_is_wanted_not_a_sampler() -> None:
    class Sampler:
        order = RandomReshuffling(10, 2)

    with pytest.raises(TypeError, match="order should be an Order of replenish, but got a Sampler; give its `order`"):
        measure(Sampler())  # type: ignore[arg-type]


def test_far_steps_are_measured_like_near_ones() -> None:
    """Beyond 2**62 positions, which 64-bit integers do not count."""
    order = SequencedReplacement(100, 64)
    for start in (2**59, 2**62 - 100):
        pool = measure(order, 10, start=start).pool
        assert pool is not None
        assert (pool.ages.sum(), pool.ages[0]) == (100, 64)  # those of the last draw have escaped none
        assert 0.1 < pool.mean_age < 1
    with pytest.raises(ValueError, match=r"start \+ epochs \* steps_per_epoch should be at most"):
        measure(order, 10, start=2**62)
