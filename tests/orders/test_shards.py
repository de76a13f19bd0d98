"""Orders for data in shards, and the shuffle buffer: which shards are open, and how well they shuffle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from replenish import BlockShuffle, Jitter, RandomReshuffling, ShuffleBuffer
from replenish.draws import KeyedWords, Purpose
from replenish.orders import Order, shard_opens
from replenish.orders.arrangement import permutation, shuffle_stretches, spread_order
from replenish.orders.shards import Shards

# ---- Block shuffle and jitter ----


def epoch_of(order: Order, number: int) -> np.ndarray:
    steps = order.steps_per_epoch
    return np.concatenate(list(order.batches(number * steps, (number + 1) * steps)))


UNEQUAL = [30, 5, 100, 45, 20]


@pytest.mark.parametrize(
    "order",
    [
        BlockShuffle(200, 16, shard_size=UNEQUAL, window=37),
        BlockShuffle(200, 16, shard_size=7, window=37, staggered=True),
        BlockShuffle(200, 16, shard_size=7, window=1, staggered=True),
        Jitter(200, 16, shard_size=UNEQUAL, window=60),
        Jitter(200, 16, shard_size=3, window=1000),
    ],
)
def test_an_epoch_has_every_sample_once(order: Order) -> None:
    epochs = [epoch_of(order, number) for number in range(4)]
    assert all((np.sort(found) == np.arange(200)).all() for found in epochs)
    assert len({tuple(found.tolist()) for found in epochs}) == 4


def test_windows_of_whole_shards_hold_whole_shards() -> None:
    order = BlockShuffle(120, 7, shard_size=10, window=30)
    windows = [set(row.tolist()) for row in epoch_of(order, 2).reshape(4, 30) // 10]
    assert [len(window) for window in windows] == [3, 3, 3, 3]
    assert set.union(*windows) == set(range(12))


def test_within_a_window_every_place_is_as_likely() -> None:
    order = BlockShuffle(30, 30, shard_size=10, window=30, seed=5)
    places = np.stack([np.argsort(epoch_of(order, number)) for number in range(3_000)])
    # The standard error of a sample's mean place over 3,000 epochs; places are uniform on 0 ... 29.
    error = np.sqrt((30**2 - 1) / 12 / 3_000)
    assert (abs(places.mean(axis=0) - 14.5) < 5.5 * error).all()


def test_staggered_windows_end_at_different_places_in_every_epoch() -> None:
    order = BlockShuffle(1000, 10, shard_size=10, window=100, staggered=True)
    words = [order._windows(order.cursor()._words.at(number)) for number in range(50)]  # type: ignore[attr-defined]
    assert all(sum(lengths) == 1000 for lengths in words)
    assert all(75 <= length <= 125 for lengths in words for length in lengths[1:-1])
    assert all(1 <= lengths[0] <= 125 for lengths in words)
    assert len({lengths[0] for lengths in words}) > 30


def test_jitter_narrower_than_its_shards_moves_nothing() -> None:
    order = Jitter(100, 10, shard_size=10, window=5)
    shards = epoch_of(order, 1).reshape(10, 10) // 10
    assert all(len(set(row)) == 1 for row in shards.tolist())


def test_shard_opens() -> None:
    sizes: dict[str, Any] = {"num_samples": 2000, "batch_size": 16}
    # If a whole window may be open, CorgiPile opens each shard once.
    aligned = BlockShuffle(**sizes, shard_size=20, window=200)
    assert shard_opens(aligned, 20, open_shards=10) == 100
    # So does jitter, if all overlapping shards may be open. Other orders open shards repeatedly.
    assert shard_opens(Jitter(**sizes, shard_size=20, window=200), 20, open_shards=25) == 100
    assert shard_opens(ShuffleBuffer(**sizes, buffer_size=200, shard_size=20), 20, open_shards=10) > 200
    assert shard_opens(RandomReshuffling(**sizes), 20, open_shards=10) > 1700
    assert shard_opens(aligned, 20, open_shards=10, start=0, stop=25) == 20  # 400 samples: two windows


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (0, "shard_size should be at least 1, but got 0"),
        ([5, 6], "shard_size should list sizes from 1 on with the sum num_samples=10, but got 2 sizes with the sum 11"),
        ([0, 10], "shard_size should list sizes from 1 on"),
        ([5.0, 5.0], "shard_size should be an int or a list of ints"),
        ("5", "shard_size should be an int"),
    ],
)
def test_bad_shards_are_named(bad: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        BlockShuffle(10, 2, shard_size=bad)  # type: ignore[arg-type]


def test_stretches_with_equal_words_are_drawn_again() -> None:
    """Two words that differ only in the bits of the index would favour an order, so the stretch is drawn again."""

    class Tied:
        def words(self, count: int) -> np.ndarray:
            words = np.arange(count, dtype=np.uint64) << np.uint64(40)
            words[: min(2, count)] = [4, 5][: min(2, count)]  # differ only in two bits, the index in a stretch of three
            return words

        def permutations(self, count: int, size: int) -> np.ndarray:
            assert (count, size) == (1, 3)
            return np.array([[2, 0, 1]])

    values = np.arange(10, 17)
    shuffle_stretches(Tied(), values, [3, 3, 1])  # type: ignore[arg-type]
    assert values.tolist() == [12, 10, 11, 13, 14, 15, 16]


@pytest.mark.parametrize("size", [1, 2, 3000, 70_000])
def test_spread_keys_are_sorted_stably(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, size << 20, size)
    keys[: size // 2] = keys[size // 2 : size // 2 * 2]  # every key twice, except one if the size is odd
    assert (spread_order(keys, size << 20) == np.argsort(keys, kind="stable")).all()


def test_jitter_over_windows_that_need_more_than_32_bits() -> None:
    """With 2**20 parts per place, a window of thousands is wider than 2**32. Both ways of multiplying are used."""
    narrow, wide = (Jitter(20_000, 100, shard_size=100, window=window) for window in (2_000, 10_000))
    for order, window in ((narrow, 2_000), (wide, 10_000)):
        places = np.concatenate(list(order.batches(0, order.steps_per_epoch)))
        assert np.sort(places).tolist() == list(range(20_000))
        spans = [np.ptp(np.flatnonzero(places // 100 == shard)) for shard in range(200)]
        assert 0.5 * window < np.median(spans) < 1.25 * window


@pytest.mark.parametrize("size", [1, 100, 399, 400, 4095, 4096, 10_000, 16_384, 30_000, 100_003])
def test_sorting_words_by_counting_and_by_comparing_agree(size: int) -> None:
    words = KeyedWords(0, Purpose.EPOCH)
    assert (permutation(words.at(1), size) == words.at(1).permutations(1, size)[0]).all()
    found = np.arange(3 * size)
    shuffle_stretches(words.at(2), found, [size] * 3)
    assert (found.reshape(3, size) == words.at(2).permutations(3, size) + size * np.arange(3)[:, np.newaxis]).all()


class Tied(KeyedWords):
    """Random words. In the first two calls, two of them are equal."""

    asked = 0

    def words(self, count: int) -> np.ndarray:
        found, self.asked = super().words(count), self.asked + 1
        if self.asked <= 2:
            found[7] = found[1999]
        return found


def test_equal_words_are_drawn_again() -> None:
    tied = [Tied(0, Purpose.EPOCH).at(1) for _ in range(3)]
    expected = tied[0].permutations(1, 2000)[0]
    assert (permutation(tied[1], 2000) == expected).all()
    values = np.arange(2000)
    shuffle_stretches(tied[2], values, [2000])
    assert (values == expected).all()
    assert [words.asked for words in tied] == [3, 3, 3]


# ---- The shuffle buffer ----


@given(st.integers(1, 60), st.integers(1, 80), st.integers(1, 30), st.integers(0, 2**63 - 1), st.integers(0, 5))
def test_equals_a_refilled_list(samples: int, size: int, shard: int, seed: int, number: int) -> None:
    order = ShuffleBuffer(samples, 4, seed=seed, buffer_size=size, shard_size=shard)
    words, size = KeyedWords(seed, Purpose.EPOCH).at(number), min(size, samples)
    shards = Shards(shard, samples)
    read = shards.in_random_order(words)[0].tolist() if len(shards.sizes) > 1 else list(range(samples))
    buffer, expected = read[:size], []
    for slot, following in zip(words.below(size, samples - size).tolist(), read[size:], strict=True):
        expected.append(buffer[slot])
        buffer[slot] = following
    expected += [buffer[slot] for slot in words.permutations(1, size)[0].tolist()]
    assert epoch_of(order, number).tolist() == expected


def test_an_epoch_has_every_sample_once_and_not_too_early() -> None:
    order = ShuffleBuffer(1000, 10, buffer_size=30)
    for number in range(5):
        found = epoch_of(order, number)
        assert (np.sort(found) == np.arange(1000)).all()
        assert (found - np.arange(1000) < 30).all()


def test_a_buffer_of_one_keeps_the_order_and_a_buffer_of_all_reshuffles() -> None:
    assert epoch_of(ShuffleBuffer(50, 7, buffer_size=1), 3).tolist() == list(range(50))
    whole, reshuffling = ShuffleBuffer(50, 7, buffer_size=50, seed=4), RandomReshuffling(50, 7, seed=4)
    assert (epoch_of(whole, 3) == epoch_of(reshuffling, 3)).all()


def test_the_time_in_the_buffer_is_geometric() -> None:
    size, orders = 20, 40
    stays = []
    for seed in range(orders):
        found = epoch_of(ShuffleBuffer(2_000, 50, seed=seed, buffer_size=size), 0)
        came = np.empty(2_000, dtype=np.int64)
        came[found] = np.arange(2_000)
        entered = np.arange(size, 1_000)  # index i enters at draw i - size; the last half is left out
        stays.append(came[entered] - (entered - size) - 1)
    counts = np.bincount(np.minimum(np.concatenate(stays), 100), minlength=101)
    expected = stats.geom.pmf(np.arange(1, 102), 1 / size) * counts.sum()
    expected[100] = counts.sum() - expected[:100].sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-6


def test_shards_have_a_new_order_in_every_epoch() -> None:
    order = ShuffleBuffer(100, 10, buffer_size=1, shard_size=10)
    orders = {tuple(epoch_of(order, number)[::10] // 10) for number in range(20)}
    assert len(orders) == 20
    assert all(sorted(each) == list(range(10)) for each in orders)


@pytest.mark.parametrize(
    ("option", "message"), [(0, "buffer_size should be at least 1"), (1.5, "buffer_size should be an int")]
)
def test_bad_buffers_are_named(option: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        ShuffleBuffer(10, 2, buffer_size=option)  # type: ignore[arg-type]
