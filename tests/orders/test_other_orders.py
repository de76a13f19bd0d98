"""The defining properties of the orders over permutations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import (
    BatchedReplacement,
    BlockReshuffling,
    FlipFlop,
    LengthGrouped,
    Order,
    PairedReversal,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleOnce,
)
from replenish.orders import padding_share
from replenish.sharding import share_of

# ---- Reshuffling, shuffle once, flip-flop and replacement ----


def epoch(order: Order, number: int) -> list[int]:
    steps = order.steps_per_epoch
    return np.concatenate(list(order.batches(number * steps, (number + 1) * steps))).tolist()


@pytest.mark.parametrize("cls", [RandomReshuffling, ShuffleOnce, FlipFlop])
@pytest.mark.parametrize(("num_samples", "batch_size"), [(10, 3), (12, 4), (5, 5), (3, 7), (1, 1)])
def test_an_epoch_is_a_permutation(cls: type, num_samples: int, batch_size: int) -> None:
    order = cls(num_samples, batch_size)
    for number in range(4):
        assert sorted(epoch(order, number)) == list(range(num_samples))


@pytest.mark.parametrize("cls", [RandomReshuffling, ShuffleOnce, FlipFlop])
def test_last_batch_kept_or_dropped(cls: type) -> None:
    kept, dropped = cls(10, 4), cls(10, 4, drop_last=True)
    assert (kept.steps_per_epoch, dropped.steps_per_epoch) == (3, 2)
    assert (kept.last_batch_size, dropped.last_batch_size) == (2, 4)
    assert [len(batch) for batch in kept.batches(0, 6)] == [4, 4, 2, 4, 4, 2]
    assert [len(batch) for batch in dropped.batches(0, 6)] == [4] * 6
    assert epoch(dropped, 1) == epoch(kept, 1)[:8]


def test_shuffle_once_repeats_its_permutation() -> None:
    order = ShuffleOnce(50, 8)
    assert epoch(order, 0) == epoch(order, 1) == epoch(order, 10**9)
    assert epoch(order, 0) != list(range(50))


def test_flip_flop_reverses_every_second_epoch() -> None:
    order = FlipFlop(50, 8)
    for pair in (0, 1, 10**6):
        assert epoch(order, 2 * pair + 1) == epoch(order, 2 * pair)[::-1]
    assert epoch(order, 2) != epoch(order, 0)


@pytest.mark.parametrize("cls", [RandomReshuffling, ShuffleOnce, FlipFlop])
def test_dropping_every_batch_is_an_error(cls: type) -> None:
    with pytest.raises(ValueError, match="batch_size=8 and num_samples=5"):
        cls(5, 8, drop_last=True)


def test_batched_replacement_draws_distinct_samples() -> None:
    for num_samples, batch_size in [(20, 7), (20, 10), (20, 11), (20, 20)]:
        for batch in BatchedReplacement(num_samples, batch_size).batches(0, 300):
            assert len(set(batch.tolist())) == batch_size


def test_orders_that_share_draws_at_one_seed() -> None:
    """As stated in their docstrings."""
    reshuffling, once, flip_flop = (cls(50, 8, seed=4) for cls in (RandomReshuffling, ShuffleOnce, FlipFlop))
    assert epoch(reshuffling, 0) == epoch(once, 0)
    assert [epoch(reshuffling, number) for number in range(4)] == [epoch(flip_flop, 2 * number) for number in range(4)]
    replacement, srs = BatchedReplacement(50, 8, seed=4), SequencedReplacement(50, 8, seed=4, sequence="identity")
    assert (replacement.batch(0) == srs.batch(0)).all()
    for step in (1, 30):
        assert (srs.samples_in_pool(step)[replacement.batch(step)] == srs.batch(step)).all()


# ---- Repeated augmentation, length-grouped batches and the relatives of flip-flop ----


@given(st.integers(3, 60), st.integers(1, 20), st.integers(1, 3), st.integers(0, 5))
def test_an_epoch_repeats_the_head_of_a_permutation(samples: int, size: int, repeats: int, number: int) -> None:
    order = RepeatedAugmentation(samples, size, repeats=repeats, seed=9)
    permutation = epoch(RandomReshuffling(samples, size, seed=9), number)
    repeated = [sample for sample in permutation for _ in range(repeats)][:samples]
    for step, batch in enumerate(order.batches(number * order.steps_per_epoch, (number + 1) * order.steps_per_epoch)):
        assert sorted(batch.tolist()) == sorted(repeated[step * size : (step + 1) * size])


@pytest.mark.parametrize("replicas", [3, 4, 8, 12])
def test_copies_go_to_different_processes(replicas: int) -> None:
    """As in DeiT's sampler, which distributes the repeated list to the processes round-robin."""
    order = RepeatedAugmentation(960, 96, repeats=3)
    for step in range(order.steps_per_epoch):
        batch = order.batch(step)
        shares = [batch[share_of(96, replicas, rank)].tolist() for rank in range(replicas)]
        assert all(len(set(share)) == len(share) for share in shares)


def transformers_order(permutation: list[int], lengths: list[int], size: int, window: int) -> list[int]:
    """Order a permutation like transformers with group_by_length; written from its description."""
    parts = [permutation[first : first + window * size] for first in range(0, len(permutation), window * size)]
    parts = [sorted(part, key=lambda sample: -lengths[sample]) for part in parts]
    longest = max(range(len(parts)), key=lambda number: lengths[parts[number][0]])
    parts[0][0], parts[longest][0] = parts[longest][0], parts[0][0]
    return [sample for part in parts for sample in part]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=70), st.integers(1, 9), st.integers(1, 6), st.integers(0, 3))
def test_sorted_windows_match_transformers(lengths: list[int], size: int, window: int, number: int) -> None:
    order = LengthGrouped(len(lengths), size, lengths=lengths, window=window, shuffle_batches=False, seed=2)
    permutation = epoch(RandomReshuffling(len(lengths), size, seed=2), number)
    assert epoch(order, number) == transformers_order(permutation, lengths, size, window)


LENGTHS = np.random.default_rng(1).integers(5, 500, 1_003)
LENGTHS[17] = 600  # the only longest sample


def test_shuffled_batches_are_the_sorted_ones_in_another_order() -> None:
    options = {"lengths": LENGTHS, "window": 10, "seed": 2}
    plain = list(LengthGrouped(1_003, 8, shuffle_batches=False, **options).batches(0, 126))
    shuffled = list(LengthGrouped(1_003, 8, **options).batches(0, 126))
    assert len(shuffled[-1]) == 3
    assert shuffled[-1].tolist() == plain[-1].tolist()
    for first in range(0, 125, 10):
        one, two = ({tuple(batch) for batch in each[first : min(first + 10, 125)]} for each in (plain, shuffled))
        # Except for the two samples that were swapped to put the longest first.
        assert len(one - two) <= (2 if first == 0 or any(17 in batch for batch in two) else 0)
    means = [float(LENGTHS[batch].mean()) for batch in shuffled]
    assert means[:10] != sorted(means[:10], reverse=True)


def test_padding() -> None:
    grouped = LengthGrouped(1_003, 8, lengths=LENGTHS)
    assert padding_share(RandomReshuffling(1_003, 8), LENGTHS) > 0.35
    assert padding_share(grouped, LENGTHS) < 0.08
    assert padding_share(grouped, np.full(1_003, 7)) == 0
    one = LengthGrouped(4, 2, lengths=[1, 2, 3, 4], window=2)
    assert padding_share(one, [1, 2, 3, 4]) == pytest.approx(1 - 10 / 12)


def test_the_default_window_matches_transformers() -> None:
    assert LengthGrouped(1_003, 8, lengths=LENGTHS).window == 1_003 // 32
    assert LengthGrouped(1_003, 1, lengths=LENGTHS).window == 50
    assert LengthGrouped(1_003, 1_000, lengths=LENGTHS).window == 1


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 3))
def test_blocks_are_reversed_in_every_second_epoch(samples: int, block: int, pair: int) -> None:
    order = PairedReversal(samples, 4, block_size=block, seed=3)
    forth, back = epoch(order, 2 * pair), epoch(order, 2 * pair + 1)
    assert forth == epoch(RandomReshuffling(samples, 4, seed=3), pair)
    assert back == [sample for first in range(0, samples, block) for sample in forth[first : first + block][::-1]]


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


def test_a_short_block_may_be_anywhere() -> None:
    order = BlockReshuffling(53, 53, block_size=10, seed=3)
    places = [epoch(order, number) for number in range(40)]
    assert all(sorted(found) == list(range(53)) for found in places)
    # The start of the first epoch's first block: a multiple of 10, plus 3 if it follows the short block.
    begins = {min(found.index(sample) for sample in places[0][:3]) for found in places}
    assert len(begins) > 3
