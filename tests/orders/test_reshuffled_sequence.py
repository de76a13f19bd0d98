"""SRS over a sequence that is drawn anew in every round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import SequencedReplacement
from replenish.draws import DistinctDraws
from replenish.orders.sequences import ReshuffledSequence


@pytest.mark.parametrize("length", [1, 2, 97, 5_003])
def test_every_round_is_another_permutation(length: int) -> None:
    sequence = ReshuffledSequence(length, seed=3)
    rounds = sequence.at(np.arange(4 * length)).reshape(4, length)
    assert (np.sort(rounds) == np.arange(length)).all()
    if length > 2:
        assert len({tuple(row) for row in rounds.tolist()}) == 4


def test_rounds_do_not_depend_on_how_they_are_asked_for() -> None:
    positions = np.random.default_rng(0).integers(0, 10**15, 500)
    expected = [int(ReshuffledSequence(97, seed=3).at(np.array([position]))[0]) for position in positions]
    assert ReshuffledSequence(97, seed=3).at(positions).tolist() == expected


@settings(max_examples=50)
@given(st.integers(4, 30), st.integers(1, 60), st.integers(0, 2**63 - 1), st.data())
def test_equals_a_list_and_a_queue(num_samples: int, pool_size: int, seed: int, data: st.DataObject) -> None:
    batch_size = data.draw(st.integers(1, pool_size))
    order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size, sequence="reshuffled")
    draws, sequence = DistinctDraws(pool_size, batch_size, seed), ReshuffledSequence(num_samples, seed)
    steps = 60
    blocks = [draws.block(index) for index in range(-(-steps // draws.steps_per_block))]
    queue = sequence.at(np.arange(pool_size + steps * batch_size)).tolist()
    pool, queue = queue[:pool_size], queue[pool_size:][::-1]
    for step, slots in enumerate(np.concatenate(blocks)[:steps].tolist()):
        assert order.batch(step).tolist() == [pool[slot] for slot in slots]
        for slot in slots:
            pool[slot] = queue.pop()
    assert order.samples_in_pool(steps).tolist() == pool


def test_a_round_is_inserted_whole() -> None:
    """Draws = copies inserted - copies in the pool, as for a fixed sequence."""
    order = SequencedReplacement(50, 10, sequence="reshuffled")
    drawn = np.bincount(np.concatenate(list(order.batches(0, 500))), minlength=50)
    in_pool = np.bincount(order.samples_in_pool(500), minlength=50)
    assert (drawn + in_pool == (50 + 500 * 10) // 50).all()


def test_the_rate_of_a_sample_does_not_swing_with_its_place() -> None:
    """With a fixed sequence the draws of an epoch gather where the sample was inserted last; here they cannot."""
    steps, epochs = 20, 3_000
    spread = {}
    for sequence in ("identity", "reshuffled"):
        order = SequencedReplacement(20, 1, sequence=sequence)
        drawn = np.concatenate(list(order.batches(200, 200 + epochs * steps))).reshape(epochs, steps)
        rates = np.stack([(drawn == sample).mean(axis=0) for sample in range(20)])
        spread[sequence] = float(rates.std() / rates.mean())
    noise = np.sqrt(20 / epochs)  # of a mean of so many counts of rate 1/20
    assert spread["identity"] > 3 * noise
    assert spread["reshuffled"] < 1.2 * noise
