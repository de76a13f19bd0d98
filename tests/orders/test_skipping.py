"""Orders without some of their steps, and orders as one sequence, at any batch size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contracts import CASES, as_lists
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import BatchedReplacement, RandomReshuffling, SequencedReplacement, Skipping, state
from replenish.orders import CursorOrder, steps_of

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda r: (r[0], r[0] + r[1])), max_size=5)


@settings(max_examples=80, deadline=None)
@given(ranges=RANGES, later=RANGES)
def test_the_steps_left_are_the_orders_in_turn(ranges: list[tuple[int, int]], later: list[tuple[int, int]]) -> None:
    order = SequencedReplacement(40, 6)
    left = [step for step in range(400) if not any(a <= step < b for a, b in ranges)]
    skipping = Skipping(order, ranges)
    assert [skipping.original_step(step) for step in range(100)] == left[:100]
    assert as_lists(skipping.batches(3, 60)) == [order.batch(step).tolist() for step in left[3:60]]
    twice = Skipping(skipping, later)
    left = [step for number, step in enumerate(left) if not any(a <= number < b for a, b in later)]
    assert [twice.original_step(step) for step in range(90)] == left[:90]
    assert twice.order is order


def test_a_state_from_before_the_range_is_a_place() -> None:
    order = SequencedReplacement(40, 6)
    skipping = Skipping(order, [(50, 70)])
    assert state.load(skipping, state.save(order, 50)) == 50
    assert state.load(Skipping(skipping, [(90, 95)]), state.save(skipping, 90)) == 90
    for order_trained, step in ((order, 51), (Skipping(order, [(49, 60)]), 50), (SequencedReplacement(40, 7), 0)):
        with pytest.raises(ValueError, match="state should be of an equal order"):
            state.load(skipping, state.save(order_trained, step))
    with pytest.raises(ValueError, match="state should be of an equal order"):
        state.load(order, state.save(skipping, 10))


def test_what_and_when_follow_the_map() -> None:
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
def test_samples_are_the_batches_after_each_other(name: str) -> None:
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
def test_rebatched_keeps_what_was_drawn(name: str, batch_size: int) -> None:
    order = CASES[name]()
    assert isinstance(order, CursorOrder)
    if order._shaped_by_its_batches:
        with pytest.raises(ValueError, match=f"keep its batch size if it is {type(order).__name__}, since"):
            order.rebatched(batch_size, 20)
        return
    rebatched = order.rebatched(batch_size, 20)
    assert as_lists(rebatched.batches(0, 20)) == as_lists(order.batches(0, 20))
    assert {len(batch) for batch in rebatched.batches(20, 60)} == {batch_size}
    if "mixture" not in name:  # whose batches keep their shares
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
