"""The shuffle buffer against a list that is drawn from and refilled, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from replenish import RandomReshuffling, ShuffleBuffer
from replenish.draws import KeyedWords, Purpose
from replenish.orders.shards import Shards


def epoch(order: ShuffleBuffer, number: int) -> list[int]:
    steps = order.steps_per_epoch
    return np.concatenate(list(order.batches(number * steps, (number + 1) * steps))).tolist()


@given(st.integers(1, 60), st.integers(1, 80), st.integers(1, 30), st.integers(0, 2**63 - 1), st.integers(0, 5))
def test_equals_a_list_that_is_refilled(samples: int, size: int, shard: int, seed: int, number: int) -> None:
    order = ShuffleBuffer(samples, 4, seed=seed, buffer_size=size, shard_size=shard)
    words, size = KeyedWords(seed, Purpose.EPOCH).at(number), min(size, samples)
    shards = Shards(shard, samples)
    read = shards.in_random_order(words)[0].tolist() if len(shards.sizes) > 1 else list(range(samples))
    buffer, expected = read[:size], []
    for slot, following in zip(words.below(size, samples - size).tolist(), read[size:], strict=True):
        expected.append(buffer[slot])
        buffer[slot] = following
    expected += [buffer[slot] for slot in words.permutations(1, size)[0].tolist()]
    assert epoch(order, number) == expected


def test_an_epoch_has_every_sample_once_and_none_too_early() -> None:
    order = ShuffleBuffer(1000, 10, buffer_size=30)
    for number in range(5):
        found = np.array(epoch(order, number))
        assert (np.sort(found) == np.arange(1000)).all()
        assert (found - np.arange(1000) < 30).all()


def test_a_buffer_of_one_reads_in_order_and_one_of_all_reshuffles() -> None:
    assert epoch(ShuffleBuffer(50, 7, buffer_size=1), 3) == list(range(50))
    whole, reshuffling = ShuffleBuffer(50, 7, buffer_size=50, seed=4), RandomReshuffling(50, 7, seed=4)
    assert epoch(whole, 3) == np.concatenate(list(reshuffling.batches(24, 32))).tolist()


def test_how_long_a_sample_stays_is_geometric() -> None:
    size, orders = 20, 40
    stays = []
    for seed in range(orders):
        found = np.array(epoch(ShuffleBuffer(2_000, 50, seed=seed, buffer_size=size), 0))
        came = np.empty(2_000, dtype=np.int64)
        came[found] = np.arange(2_000)
        entered = np.arange(size, 1_000)  # with draw number i - size; long before the end, where the buffer is emptied
        stays.append(came[entered] - (entered - size) - 1)
    counts = np.bincount(np.minimum(np.concatenate(stays), 100), minlength=101)
    expected = stats.geom.pmf(np.arange(1, 102), 1 / size) * counts.sum()
    expected[100] = counts.sum() - expected[:100].sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_shards_come_in_another_order_in_every_epoch() -> None:
    order = ShuffleBuffer(100, 10, buffer_size=1, shard_size=10)
    orders = {tuple(np.array(epoch(order, number))[::10] // 10) for number in range(20)}
    assert len(orders) == 20
    assert all(sorted(each) == list(range(10)) for each in orders)


@pytest.mark.parametrize(
    ("option", "message"), [(0, "buffer_size should be at least 1"), (1.5, "buffer_size should be an int")]
)
def test_bad_buffers_are_named(option: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ShuffleBuffer(10, 2, buffer_size=option)  # type: ignore[arg-type]
