"""How often a sample was seen before, and when: against a plain count of everything drawn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from contracts import CASES

from replenish import FlipFlop, RandomReshuffling, SequencedReplacement, weighted_sequence
from replenish.orders import Visits, counts_before, steps_of

STEPS = [0, 1, 5, 13, 14, 60, 61]


@pytest.mark.parametrize("name", list(CASES))
def test_counts_are_those_of_all_that_was_drawn(name: str) -> None:
    order = CASES[name]()
    drawn: Counter[int] = Counter()
    expected = {}
    for step, batch in enumerate(order.batches(0, max(STEPS) + 1)):
        expected[step] = [drawn[sample] for sample in range(order.num_samples)]
        drawn.update(batch.tolist())
    for step in STEPS:
        assert counts_before(order, step).tolist() == expected[step]


@pytest.mark.parametrize("name", list(CASES))
def test_visits_are_numbered_in_turn(name: str) -> None:
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
    for step in (39, 3, 5, 20):  # back, on, and far
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
    """Each count goes on by one from visit to visit; where a step follows on nothing, it is found anew."""
    far, order = 10**9, CASES[name]()
    last: dict[int, int] = {}
    for step in range(far, far + 60):
        for sample, visit in zip(order.batch(step).tolist(), CASES[name]().visits(step).tolist(), strict=True):
            assert visit == last.get(sample, visit - 1) + 1
            assert abs(visit - far * 8 / 97) < 40 + far * 8 / 97 * 0.08  # an epoch has 13 steps of 97 / 8
            last[sample] = visit


def test_an_epoch_is_the_default() -> None:
    order = RandomReshuffling(100, 10)
    assert len(steps_of(order, 3, 40)) == 1


def test_bad_samples_are_named() -> None:
    order = RandomReshuffling(100, 10)
    with pytest.raises(ValueError, match="sample should be at most 99, but got 100"):
        steps_of(order, 100)
    with pytest.raises(TypeError, match="order should be an Order"):
        Visits([1, 2])  # type: ignore[arg-type]
