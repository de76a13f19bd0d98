"""A trace against the reference, the orders and plain counts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import BatchedReplacement, RandomReshuffling, SequencedReplacement
from replenish.measure.trace import MAX_SLOTS_KEPT, ORDERS, QUEUE_AHEAD, Trace, compute_trace
from replenish.orders.reference import ReferencePool


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    num_samples = draw(st.integers(1, 30))
    pool_size = draw(st.one_of(st.none(), st.integers(1, 70)))
    indices = st.lists(st.integers(0, num_samples - 1), min_size=1, max_size=40)
    sequence = draw(st.one_of(st.just("shuffled"), st.just("identity"), indices))
    slots = pool_size or (num_samples if isinstance(sequence, str) else len(sequence))
    batch_size = draw(st.integers(1, min(num_samples, slots)))
    return {
        "num_samples": num_samples,
        "batch_size": batch_size,
        "pool_size": pool_size,
        "seed": draw(st.integers(0, 2**63 - 1)),
        "sequence": sequence,
    }


@settings(max_examples=60)
@given(configurations(), st.integers(1, 60))
def test_the_trace_equals_the_order_and_the_reference(configuration: dict[str, Any], steps: int) -> None:
    trace = compute_trace(steps=steps, **configuration)
    order = SequencedReplacement(**configuration)
    # A pool as large as the sequence begins with the sequence itself.
    length = int(order.config()["sequence_length"])
    sequence = SequencedReplacement(**{**configuration, "pool_size": max(length, order.batch_size)}).samples_in_pool(0)
    reference = ReferencePool(sequence[:length].tolist(), order.pool_size)
    assert len(trace) == steps
    for number in range(steps):
        step = trace.step(number)
        queue = list(reference.queue)
        assert step.number == number
        assert step.pool_before.tolist() == reference.pool == order.samples_in_pool(number).tolist()
        assert step.queue.tolist() == [queue[place % length] for place in range(order.batch_size + QUEUE_AHEAD)]
        assert len(set(step.slots.tolist())) == order.batch_size
        assert step.batch.tolist() == reference.step(step.slots.tolist()) == order.batch(number).tolist()
        assert step.refill.tolist() == step.queue[: order.batch_size].tolist()
        assert step.refill.tolist() == sequence[step.positions % length].tolist()
        assert step.positions[0] == order.pool_size + number * order.batch_size
        assert step.pool_after.tolist() == reference.pool
    assert trace.queues[-1][0] == reference.queue[0]


def test_the_trace_has_the_other_orders_at_the_same_steps() -> None:
    trace = compute_trace(11, 4, 9, seed=3, sequence="shuffled")
    orders = {
        "srs": SequencedReplacement(11, 4, seed=3),
        "reshuffling": RandomReshuffling(11, 4, seed=3),
        "replacement": BatchedReplacement(11, 4, seed=3),
    }
    assert tuple(orders) == ORDERS
    for name, order in orders.items():
        assert [batch.tolist() for batch in trace.batches[name]] == [batch.tolist() for batch in order.batches(0, 9)]
    assert len(trace.batches["reshuffling"][2]) == 3  # the short end of an epoch


@pytest.fixture
def trace() -> Trace:
    return compute_trace(num_samples=7, batch_size=3, steps=12, seed=1)


def test_counts_unseen_and_copies(trace: Trace) -> None:
    for order in ORDERS:
        drawn: list[int] = []
        unseen = trace.unseen(order)
        assert unseen[0] == 7
        for steps, batch in enumerate(trace.batches[order], start=1):
            drawn += batch.tolist()
            assert trace.counts(order, steps).tolist() == [drawn.count(sample) for sample in range(7)]
            assert unseen[steps] == 7 - len(set(drawn))
    # Copies inserted minus copies in the pool are the draws.
    for steps in range(13):
        inserted = np.bincount(np.arange(7 + 3 * steps) % 7, minlength=7)
        assert (inserted - trace.copies(steps)).tolist() == trace.counts("srs", steps).tolist()


def test_plain_values(trace: Trace) -> None:
    plain = trace.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["num_samples"], plain["batch_size"], plain["pool_size"]) == (7, 3, 7)
    assert (plain["steps"], plain["seed"], plain["sequence"]) == (12, 1, "identity")
    assert plain["pools"][3] == trace.step(3).pool_before.tolist() == trace.step(2).pool_after.tolist()
    assert plain["refills"][2] == trace.step(2).refill.tolist()
    assert plain["unseen"]["srs"][0] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 6, 2), "batch_size should be at most pool_size"),
        ((5, 2, 0), "steps should be at least 1, but got 0"),
        ((5, 2, 2.0), "steps should be an int"),
        ((MAX_SLOTS_KEPT, 2, 1), "pool_size should be at most"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        compute_trace(*arguments)
