"""The fast ways to a far place against the plain one: every draw of every block, sorted, one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from replenish import SequencedReplacement
from replenish.draws import DistinctDraws
from replenish.orders import replay as replay_module
from replenish.orders.pool import Pool
from replenish.orders.replay import LARGE, last_draws, replay
from replenish.orders.sequences import IdentitySequence


def refill_of(draws: DistinctDraws, period: int) -> replay_module.Refill:
    size = draws.steps_per_block * draws.batch_size
    return lambda block: (np.arange(size) + block * size) % period


def plainly(draws: DistinctDraws, refill: replay_module.Refill, start: int, stop: int) -> np.ndarray:
    positions = np.full(draws.num_slots, -1)
    for block in range(start, stop):
        for slot, value in zip(draws.block(block).ravel().tolist(), refill(block).tolist(), strict=True):
            positions[slot] = value
    return positions


@pytest.mark.parametrize(
    ("slots", "size"),
    [
        (40_000, 20_000),  # half of the slots: thousands of repeats, and more than the spare draws
        (70_001, 17_000),
        (400_000, 16_500),
        (3_000, 64),  # small steps, which are sorted
    ],
)
@pytest.mark.parametrize("period", [10**9, 41_003])
def test_a_replay_is_that_of_the_blocks(slots: int, size: int, period: int) -> None:
    draws = DistinctDraws(slots, size, seed=3)
    refill = refill_of(draws, max(period, draws.steps_per_block * size))
    positions = np.full(slots, -1)
    replay(draws, positions, refill, 5, 9)
    assert positions.tolist() == plainly(draws, refill, 5, 9).tolist()


def test_repeats_that_exhaust_the_spare_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = DistinctDraws(40_000, 17_000, seed=3)
    monkeypatch.setattr(draws, "_spare", 5)  # both ways have it: thousands are drawn later
    refill = refill_of(draws, 10**9)
    positions = np.full(40_000, -1)
    replay(draws, positions, refill, 0, 2)
    assert positions.tolist() == plainly(draws, refill, 0, 2).tolist()


def test_words_have_all_that_a_block_uses() -> None:
    draws = DistinctDraws(3 * 2**28, 20_000, seed=1)  # a quarter of the half words is rejected
    words = draws.words_of(7).view(np.uint32).astype(np.uint64)
    possible = set((words * np.uint64(3 * 2**28) >> np.uint64(32)).tolist())
    assert set(draws.block(7).ravel().tolist()) <= possible


@pytest.mark.slow
@pytest.mark.parametrize(("size", "processors"), [(65_536, 1), (65_536, 3), (300, 2)])
def test_far_places_of_large_pools(size: int, processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "processors", lambda: processors)
    draws = DistinctDraws(LARGE + 77, size, seed=2)
    fast, plain = (Pool(draws, IdentitySequence(LARGE + 77)) for _ in range(2))
    plain._threaded = None
    step = 40 * (LARGE + 77) // size + 1
    assert (fast.positions_before(step) == plain.positions_before(step)).all()


@pytest.mark.slow
def test_slots_never_drawn_are_found_out() -> None:
    """Two epochs from the start, a seventh of the slots has its first content still."""
    draws = DistinctDraws(LARGE, 65_536, seed=2)
    refill = refill_of(draws, 10**9)
    found = last_draws(draws, refill, 32, np.int64)
    assert 0.1 < np.mean(found < 0) < 0.17
    expected = np.full(LARGE, -1)
    for block in range(32):
        expected[draws.block(block).ravel()] = refill(block)
    assert (found == expected).all()


def test_large_orders_are_pure() -> None:
    order = SequencedReplacement(LARGE, 4_096, seed=5)
    far = 10**9
    batch = order.batch(far).tolist()
    assert next(order.batches(far)).tolist() == batch
