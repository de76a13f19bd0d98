"""Earlier visits of a sample, orders without some of their steps, and orders rebuilt from configs and states."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from contracts import CASES, FACTS, as_lists
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import (
    BatchedReplacement,
    FlipFlop,
    RandomReshuffling,
    SequencedReplacement,
    Skipping,
    state,
    weighted_sequence,
)
from replenish.orders import CursorOrder, Visits, counts_before, steps_of
from replenish.orders.building import order_from_config
from replenish.orders.rebatched import FittedOrder

# ---- Visits, against a plain count of all draws ----


STEPS = [0, 1, 5, 13, 14, 60, 61]


@pytest.mark.parametrize("name", list(CASES))
def test_counts_equal_a_plain_count(name: str) -> None:
    order = CASES[name]()
    drawn: Counter[int] = Counter()
    expected = {}
    for step, batch in enumerate(order.batches(0, max(STEPS) + 1)):
        expected[step] = [drawn[sample] for sample in range(order.num_samples)]
        drawn.update(batch.tolist())
    for step in STEPS:
        assert counts_before(order, step).tolist() == expected[step]


@pytest.mark.parametrize("name", list(CASES))
def test_visits_are_numbered_consecutively(name: str) -> None:
    order = CASES[name]()
    visits, drawn = Visits(order), Counter[int]()
    expected = []
    for step, batch in enumerate(order.batches(0, 40)):
        numbers = []
        for sample in batch.tolist():
            numbers.append(drawn[sample])
            drawn[sample] += 1
        expected.append(numbers)
        assert visits.at(step).tolist() == numbers
        assert order.visits(step).tolist() == numbers
    for step in (39, 3, 5, 20):  # backwards, forwards, and far
        assert visits.at(step).tolist() == expected[step]
        assert CASES[name]().visits(step).tolist() == expected[step]


@pytest.mark.parametrize("name", list(CASES))
def test_steps_of_a_sample(name: str) -> None:
    order = CASES[name]()
    batches = [batch.tolist() for batch in order.batches(7, 90)]
    for sample in (0, order.num_samples - 1):
        assert steps_of(order, sample, 7, 90).tolist() == [7 + k for k, batch in enumerate(batches) if sample in batch]


def test_far_counts() -> None:
    far = 10**12
    order = SequencedReplacement(50, 10)
    assert abs(counts_before(order, far) - far * 10 // 50).max() < 12
    later = counts_before(order, far + 30)
    drawn = np.bincount(np.concatenate(list(order.batches(far, far + 30))), minlength=50)
    assert (later - counts_before(order, far) == drawn).all()
    weighted = SequencedReplacement(5, 3, pool_size=8, sequence=weighted_sequence([1, 2, 3, 4, 5], 30))
    assert counts_before(weighted, far).sum() == 3 * far
    assert (counts_before(FlipFlop(50, 7), 8 * far + 3) - far).sum() == 21


@pytest.mark.parametrize("name", ["srs", "reshuffling", "jitter", "balls-in-bins", "stratified", "stratified-srs"])
def test_far_visits(name: str) -> None:
    """From visit to visit the count grows by one, also if every step is computed by a new order."""
    far, order = 10**9, CASES[name]()
    last: dict[int, int] = {}
    for step in range(far, far + 60):
        for sample, visit in zip(order.batch(step).tolist(), CASES[name]().visits(step).tolist(), strict=True):
            assert visit == last.get(sample, visit - 1) + 1
            assert abs(visit - far * 8 / 97) < 40 + far * 8 / 97 * 0.08  # an epoch has 13 steps of 97 / 8
            last[sample] = visit


def test_bad_samples_are_named() -> None:
    order = RandomReshuffling(100, 10)
    with pytest.raises(ValueError, match="sample should be at most 99, but got 100"):
        steps_of(order, 100)
    with pytest.raises(TypeError, match="order should be an Order"):
        Visits([1, 2])  # type: ignore[arg-type]


# ---- Orders without some of their steps, and orders as a sequence that can be cut into other batches ----


RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda r: (r[0], r[0] + r[1])), max_size=5)


@settings(max_examples=80, deadline=None)
@given(ranges=RANGES, later=RANGES)
def test_the_remaining_steps_keep_their_order(ranges: list[tuple[int, int]], later: list[tuple[int, int]]) -> None:
    order = SequencedReplacement(40, 6)
    left = [step for step in range(400) if not any(a <= step < b for a, b in ranges)]
    skipping = Skipping(order, ranges)
    assert [skipping.original_step(step) for step in range(100)] == left[:100]
    assert as_lists(skipping.batches(3, 60)) == [order.batch(step).tolist() for step in left[3:60]]
    twice = Skipping(skipping, later)
    left = [step for number, step in enumerate(left) if not any(a <= number < b for a, b in later)]
    assert [twice.original_step(step) for step in range(90)] == left[:90]
    assert twice.order is order


def test_a_state_from_before_the_skipped_range_is_valid() -> None:
    order = SequencedReplacement(40, 6)
    skipping = Skipping(order, [(50, 70)])
    assert state.load(skipping, state.save(order, 50)) == 50
    assert state.load(Skipping(skipping, [(90, 95)]), state.save(skipping, 90)) == 90
    for order_trained, step in ((order, 51), (Skipping(order, [(49, 60)]), 50), (SequencedReplacement(40, 7), 0)):
        with pytest.raises(ValueError, match="state should be of an equal order"):
            state.load(skipping, state.save(order_trained, step))
    with pytest.raises(ValueError, match="state should be of an equal order"):
        state.load(order, state.save(skipping, 10))


def test_visits_and_steps_account_for_skipped_steps() -> None:
    order = RandomReshuffling(100, 10)
    skipping = Skipping(order, [(12, 15)])
    sample = int(order.batch(17)[0])
    assert 14 in steps_of(skipping, sample, 10, 20)
    assert skipping.visits(14).tolist() == [
        sum(sample in order.batch(step) for step in range(17) if not 12 <= step < 15) for sample in order.batch(17)
    ]


@pytest.mark.parametrize(
    ("ranges", "error", "message"),
    [
        (5, TypeError, "ranges should be a list of pairs"),
        ([(3, 3)], ValueError, r"ranges should have starts below their stops, but got \(3, 3\)"),
        ([(3,)], ValueError, "ranges should be a list of pairs"),
        ([(-1, 3)], ValueError, "the start of a range should be at least 0, but got -1"),
        ([(1.5, 3)], TypeError, "the start of a range should be an int"),
    ],
)
def test_wrong_ranges_are_named(ranges: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Skipping(SequencedReplacement(40, 6), ranges)


def test_only_the_librarys_orders() -> None:
    with pytest.raises(TypeError, match="order should be one of replenish's orders, but got a list"):
        Skipping([1, 2], [(1, 2)])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name]().__dict__.get("batch_sizes_vary")])
def test_samples_are_the_concatenated_batches(name: str) -> None:
    order = CASES[name]()
    assert isinstance(order, CursorOrder)
    if getattr(order, "batch_sizes_vary", False):
        with pytest.raises(ValueError, match="batches of one size, but those of .* have random sizes"):
            order.samples(0, 10)
        return
    batches = as_lists(order.batches(0, 520))
    flat = [sample for batch in batches for sample in batch]
    assert order.samples(0, 500).tolist() == flat[:500]
    assert order.samples(137, 400).tolist() == flat[137:400]
    assert order.draws_before(70) == sum(map(len, batches[:70]))


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("batch_size", [3, 31])
def test_rebatched_keeps_earlier_draws(name: str, batch_size: int) -> None:
    order = CASES[name]()
    assert isinstance(order, CursorOrder)
    if order._shaped_by_its_batches:
        with pytest.raises(ValueError, match=f"keep its batch size if it is {type(order).__name__}, since"):
            order.rebatched(batch_size, 20)
        return
    rebatched = order.rebatched(batch_size, 20)
    assert as_lists(rebatched.batches(0, 20)) == as_lists(order.batches(0, 20))
    assert {len(batch) for batch in rebatched.batches(20, 60)} == {batch_size}
    if "mixture" not in name:  # a mixture keeps the shares in each batch instead
        drawn = np.concatenate(list(rebatched.batches(0, 60)))
        assert drawn.tolist() == order.samples(0, len(drawn)).tolist()
    assert state.load(rebatched, state.save(order, 20)) == 20
    with pytest.raises(ValueError, match="of an equal order"):
        state.load(rebatched, state.save(order, 21))


def test_rebatched_names_its_arguments() -> None:
    with pytest.raises(ValueError, match="at_step should be at least 0, but got -1"):
        SequencedReplacement(40, 6).rebatched(3, -1)
    with pytest.raises(ValueError, match="the samples of each batch are distinct"):
        BatchedReplacement(40, 6).rebatched(3, 0)


# ---- Orders rebuilt from configs and states ----


SHARDS = {"block-shuffle-staggered": [40, 7, 30, 20], "jitter-narrow": [40, 7, 30, 20]}


def named_by_checksum(name: str) -> dict[str, Any]:
    """Return the arrays of a case that its config names by checksum."""
    own: dict[str, Any] = {"sequence": weighted_sequence(range(12), 55), "shard_size": SHARDS.get(name)}
    own |= {"weights": [0.1, 0, 0.7, 0.15, 0.05] if "stratified" in name else FACTS["weights"]}
    config = CASES[name]().config()
    return {
        field: own.get(field, FACTS.get(field)) for field, value in config.items() if str(value).startswith("sha256:")
    }


@pytest.mark.parametrize("name", list(CASES))
def test_every_order_is_rebuilt_from_its_state(name: str) -> None:
    order = CASES[name](seed=5)
    saved = json.loads(json.dumps(state.save(order, 40)))
    assert order_from_config(saved, **named_by_checksum(name)) == order


def test_an_order_fitted_to_a_loader() -> None:
    order = FittedOrder(SequencedReplacement(10, 4), steps=3, last_batch_size=2)
    assert order_from_config(order.config()) == order


def test_missing_and_wrong_entries_are_named() -> None:
    config = CASES["stratified"]().config()
    with pytest.raises(ValueError, match="labels should be given too"):
        order_from_config(config)
    with pytest.raises(ValueError, match="labels is 'sha256:.*' in the config, but what it names has 'sha256:"):
        order_from_config(config, labels=[0, 1] * 48 + [0])
    with pytest.raises(ValueError, match="lengths should not be given for Stratified"):
        order_from_config(config, lengths=FACTS["lengths"])
    for name in ("Own", ["Mixture"]):
        with pytest.raises(ValueError, match=re.escape(f"the config has {name!r}")):
            order_from_config({"order": name})
    with pytest.raises(ValueError, match="batch_size should be in the config"):
        order_from_config({"order": "FlipFlop", "num_samples": 4})
    with pytest.raises(ValueError, match="stream is 'v2' in the config"):
        order_from_config({**CASES["reshuffling"]().config(), "stream": "v2"})
