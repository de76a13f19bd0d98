"""What makes each baseline what it is."""

from __future__ import annotations

import pytest

from replenish import (
    BatchedReplacement,
    FlipFlop,
    RandomReshuffling,
    SequencedReplacement,
    ShuffleOnce,
)


def epoch(order: RandomReshuffling | ShuffleOnce | FlipFlop, number: int) -> list[int]:
    steps = order.steps_per_epoch
    return [index for batch in order.batches(number * steps, (number + 1) * steps) for index in batch.tolist()]


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


def test_flip_flop_goes_back_the_way_it_came() -> None:
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


def test_which_orders_share_draws_at_one_seed() -> None:
    """As their docstrings say."""
    reshuffling, once, flip_flop = (cls(50, 8, seed=4) for cls in (RandomReshuffling, ShuffleOnce, FlipFlop))
    assert epoch(reshuffling, 0) == epoch(once, 0)
    assert [epoch(reshuffling, number) for number in range(4)] == [epoch(flip_flop, 2 * number) for number in range(4)]
    replacement, srs = BatchedReplacement(50, 8, seed=4), SequencedReplacement(50, 8, seed=4, sequence="identity")
    assert (replacement.batch(0) == srs.batch(0)).all()
    for step in (1, 30):
        assert (srs.samples_in_pool(step)[replacement.batch(step)] == srs.batch(step)).all()
