"""Repeated augmentation, length-grouped batches and the relatives of flip-flop: exactly what each does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import (
    BlockReshuffling,
    FlipFlop,
    LengthGrouped,
    Order,
    PairedReversal,
    RandomReshuffling,
    RepeatedAugmentation,
)
from replenish.orders import padding_share
from replenish.sharding import share_of


def epoch(order: Order, number: int) -> list[int]:
    steps = order.steps_per_epoch
    return np.concatenate(list(order.batches(number * steps, (number + 1) * steps))).tolist()


@given(st.integers(3, 60), st.integers(1, 20), st.integers(1, 3), st.integers(0, 5))
def test_an_epoch_repeats_the_head_of_a_permutation(samples: int, size: int, repeats: int, number: int) -> None:
    order = RepeatedAugmentation(samples, size, repeats=repeats, seed=9)
    permutation = epoch(RandomReshuffling(samples, size, seed=9), number)
    repeated = [sample for sample in permutation for _ in range(repeats)][:samples]
    for step, batch in enumerate(order.batches(number * order.steps_per_epoch, (number + 1) * order.steps_per_epoch)):
        assert sorted(batch.tolist()) == sorted(repeated[step * size : (step + 1) * size])


@pytest.mark.parametrize("replicas", [3, 4, 8, 12])
def test_copies_go_to_different_processes(replicas: int) -> None:
    """As from DeiT's sampler, which deals the repeated list out to the processes in turn."""
    order = RepeatedAugmentation(960, 96, repeats=3)
    for step in range(order.steps_per_epoch):
        batch = order.batch(step)
        shares = [batch[share_of(96, replicas, rank)].tolist() for rank in range(replicas)]
        assert all(len(set(share)) == len(share) for share in shares)


def test_an_epoch_shows_a_third() -> None:
    order = RepeatedAugmentation(300, 30, repeats=3)
    shown = [set(epoch(order, number)) for number in range(3)]
    assert [len(each) for each in shown] == [100, 100, 100]
    assert len(shown[0] | shown[1]) > 140


def transformers_order(permutation: list[int], lengths: list[int], size: int, window: int) -> list[int]:
    """What transformers makes of a permutation with group_by_length, written anew from its description."""
    parts = [permutation[first : first + window * size] for first in range(0, len(permutation), window * size)]
    parts = [sorted(part, key=lambda sample: -lengths[sample]) for part in parts]
    longest = max(range(len(parts)), key=lambda number: lengths[parts[number][0]])
    parts[0][0], parts[longest][0] = parts[longest][0], parts[0][0]
    return [sample for part in parts for sample in part]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=70), st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
def test_sorted_windows_are_those_of_transformers(lengths: list[int], size: int, window: int, number: int) -> None:
    order = LengthGrouped(len(lengths), size, lengths=lengths, window=window, shuffle_batches=False, seed=2)
    permutation = epoch(RandomReshuffling(len(lengths), size, seed=2), number)
    assert epoch(order, number) == transformers_order(permutation, lengths, size, window)


LENGTHS = np.random.default_rng(1).integers(5, 500, 1_003)
LENGTHS[17] = 600  # the longest, alone


def test_shuffled_batches_are_the_sorted_ones_in_another_order() -> None:
    options = {"lengths": LENGTHS, "window": 10, "seed": 2}
    plain = list(LengthGrouped(1_003, 8, shuffle_batches=False, **options).batches(0, 126))
    shuffled = list(LengthGrouped(1_003, 8, **options).batches(0, 126))
    assert len(shuffled[-1]) == 3
    assert shuffled[-1].tolist() == plain[-1].tolist()
    for first in range(0, 125, 10):
        one, two = ({tuple(batch) for batch in each[first : min(first + 10, 125)]} for each in (plain, shuffled))
        # But for the two samples that were exchanged to have the longest first.
        assert len(one - two) <= (2 if first == 0 or any(17 in batch for batch in two) else 0)
    means = [float(LENGTHS[batch].mean()) for batch in shuffled]
    assert means[:10] != sorted(means[:10], reverse=True)


def test_long_lengths_are_sorted_too() -> None:
    lengths = LENGTHS * 10**6  # beyond 16 bits
    short, long = (LengthGrouped(1_003, 8, lengths=each, seed=2) for each in (LENGTHS, lengths))
    assert epoch(short, 1) == epoch(long, 1)


def test_padding() -> None:
    grouped = LengthGrouped(1_003, 8, lengths=LENGTHS)
    assert padding_share(RandomReshuffling(1_003, 8), LENGTHS) > 0.35
    assert padding_share(grouped, LENGTHS) < 0.08
    assert padding_share(grouped, np.full(1_003, 7)) == 0
    one = LengthGrouped(4, 2, lengths=[1, 2, 3, 4], window=2)
    assert padding_share(one, [1, 2, 3, 4]) == pytest.approx(1 - 10 / 12)


def test_the_default_window_is_that_of_transformers() -> None:
    assert LengthGrouped(1_003, 8, lengths=LENGTHS).window == 1_003 // 32
    assert LengthGrouped(1_003, 1, lengths=LENGTHS).window == 50
    assert LengthGrouped(1_003, 1_000, lengths=LENGTHS).window == 1


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 3))
def test_blocks_are_reversed_in_every_second_epoch(samples: int, block: int, pair: int) -> None:
    order = PairedReversal(samples, 4, block_size=block, seed=3)
    forth, back = epoch(order, 2 * pair), epoch(order, 2 * pair + 1)
    assert forth == epoch(RandomReshuffling(samples, 4, seed=3), pair)
    assert back == [sample for first in range(0, samples, block) for sample in forth[first : first + block][::-1]]


def test_one_block_is_flip_flop() -> None:
    one, two = PairedReversal(50, 8, seed=3), FlipFlop(50, 8, seed=3)
    assert [epoch(one, number) for number in range(4)] == [epoch(two, number) for number in range(4)]


def test_blocks_keep_their_samples_and_change_their_order() -> None:
    order = BlockReshuffling(60, 7, block_size=10, seed=3)
    epochs = [
        [found[first : first + 10] for first in range(0, 60, 10)] for found in (epoch(order, e) for e in range(30))
    ]
    assert len({frozenset(map(frozenset, blocks)) for blocks in epochs}) == 1
    assert len({tuple(map(frozenset, blocks)) for blocks in epochs}) > 25  # of 720 orders of blocks
    inside = {tuple(block) for blocks in epochs for block in blocks}
    assert len(inside) == 180
    assert epochs[0] != [list(range(first, first + 10)) for first in range(0, 60, 10)]


def test_a_short_block_may_stand_anywhere() -> None:
    order = BlockReshuffling(53, 53, block_size=10, seed=3)
    places = [epoch(order, number) for number in range(40)]
    assert all(sorted(found) == list(range(53)) for found in places)
    # Where the first block of the first epoch begins: at a multiple of 10, or 3 later, behind the short one.
    begins = {min(found.index(sample) for sample in places[0][:3]) for found in places}
    assert len(begins) > 3
