"""The fast ways to a far place against the plain one, which replays every draw of every block."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from replenish.draws import DistinctDraws
from replenish.orders import pool_search
from replenish.orders.pool import Pool
from replenish.orders.pool_search import LARGE, Hit, last_draws, replay
from replenish.orders.sequences import IdentitySequence


def refill_of(draws: DistinctDraws, period: int) -> pool_search.Refill:
    size = draws.steps_per_block * draws.batch_size
    return lambda block: (np.arange(size) + block * size) % period


def plainly(draws: DistinctDraws, refill: pool_search.Refill, start: int, stop: int) -> np.ndarray:
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
def test_a_replay_equals_the_plain_one(slots: int, size: int, period: int) -> None:
    draws = DistinctDraws(slots, size, seed=3)
    refill = refill_of(draws, max(period, draws.steps_per_block * size))
    positions = np.full(slots, -1)
    replay(draws, positions, refill, 5, 9)
    assert positions.tolist() == plainly(draws, refill, 5, 9).tolist()


def test_words_include_every_word_of_a_block() -> None:
    draws = DistinctDraws(3 * 2**28, 20_000, seed=1)  # a quarter of the half words is rejected
    words = draws.words_of(7).view(np.uint32).astype(np.uint64)
    possible = set((words * np.uint64(3 * 2**28) >> np.uint64(32)).tolist())
    assert set(draws.block(7).ravel().tolist()) <= possible


@pytest.mark.parametrize(("slots", "size"), [(LARGE, 65_536), (LARGE + 3, 4_096), (3 * 2**28, 20_000), (2**33, 5_000)])
def test_the_collision_table_finds_the_same_repeats_as_sorting(slots: int, size: int) -> None:
    marked, sorted_ = (DistinctDraws(slots, size, seed=4) for _ in range(2))
    assert marked._collisions is not None
    sorted_._collisions = None
    for block in (0, 1, 10**6):
        assert (marked.block(block) == sorted_.block(block)).all()


def test_the_collision_table_with_too_few_spare_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    marked, sorted_ = (DistinctDraws(LARGE, 65_536, seed=3) for _ in range(2))
    sorted_._collisions = None
    for draws in (marked, sorted_):
        monkeypatch.setattr(draws, "_spare", 5)  # of two thousand repeats, most need later draws
    assert (marked.block(0) == sorted_.block(0)).all()


class Threads:
    """A search group whose members are threads."""

    def __init__(self, rank: int, barrier: threading.Barrier, shared: list[object]) -> None:
        self.size, self.rank, self._barrier, self._shared = barrier.parties, rank, barrier, shared

    def join(self, positions: np.ndarray) -> None:
        for other in self._exchange(positions.copy()):
            np.copyto(positions, other, where=other >= 0)

    def gather(self, hits: list[Hit]) -> list[Hit]:
        return [hit for each in self._exchange(hits) for hit in each]

    def _exchange(self, own: object) -> list[Any]:
        self._shared[self.rank] = own
        self._barrier.wait()
        values = list(self._shared)
        self._barrier.wait()
        return values


@pytest.mark.parametrize("size", [65_536, 300])
def test_a_group_finds_the_pool_of_one(size: int) -> None:
    draws = DistinctDraws(LARGE + 77, size, seed=2)
    refill = refill_of(draws, 10**9)
    stop = 30 * (LARGE + 77) // (draws.steps_per_block * size)
    barrier, shared = threading.Barrier(3), [None] * 3
    with ThreadPoolExecutor(3) as pool:
        groups = [Threads(rank, barrier, shared) for rank in range(3)]
        found = list(pool.map(lambda group: last_draws(copy.deepcopy(draws), refill, stop, np.int64, group), groups))
    alone = last_draws(draws, refill, stop, np.int64)
    assert all((each == alone).all() for each in found)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "processors"), [(65_536, 3), (300, 1)])
def test_far_places_of_large_pools(size: int, processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_search, "processors", lambda: processors)
    draws = DistinctDraws(LARGE + 77, size, seed=2)
    fast, plain = (Pool(draws, IdentitySequence(LARGE + 77)) for _ in range(2))
    plain._threaded = None
    step = 40 * (LARGE + 77) // size + 1
    assert (fast.positions_before(step) == plain.positions_before(step)).all()


@pytest.mark.slow
def test_slots_never_drawn_are_detected() -> None:
    """After two epochs, a seventh of the slots still has its first content."""
    draws = DistinctDraws(LARGE, 65_536, seed=2)
    refill = refill_of(draws, 10**9)
    found = last_draws(draws, refill, 32, np.int64)
    assert 0.1 < np.mean(found < 0) < 0.17
    expected = np.full(LARGE, -1)
    for block in range(32):
        expected[draws.block(block).ravel()] = refill(block)
    assert (found == expected).all()
