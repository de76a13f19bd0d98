"""Readers a little apart from each other must not send an order back and forth."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from integration_support import stream

from replenish import SequencedReplacement
from replenish.integrations.recent import KEPT_STEPS, RecentBatches


class Recorded(SequencedReplacement):
    """An order that keeps which steps it was asked for."""

    def __init__(self) -> None:
        super().__init__(1000, 40, seed=3)
        self.asked: list[int] = []

    def batch(self, step: int) -> np.ndarray:
        self.asked.append(step)
        return super().batch(step)


def test_nearly_in_order_each_step_is_drawn_once_and_forwards() -> None:
    order = Recorded()
    batches = RecentBatches(order)
    expected = stream(0, 1000)
    steps = sorted(range(1000), key=lambda step: step + random.Random(step).randrange(50))
    assert all(batches[step].tolist() == expected[step] for step in steps)
    assert order.asked == list(range(1000))


def test_a_jump_keeps_room_for_readers_just_behind() -> None:
    order = Recorded()
    batches = RecentBatches(order)
    for step in (10**6, 10**6 - KEPT_STEPS // 4, 10**6 + 3):
        assert batches[step].tolist() == SequencedReplacement(1000, 40, seed=3).batch(step).tolist()
    assert order.asked == sorted(set(order.asked))
    assert batches[0].tolist() == stream(0, 1)[0]


def test_threads() -> None:
    batches, expected = RecentBatches(Recorded()), stream(0, 400)
    with ThreadPoolExecutor(16) as pool:
        assert [batch.tolist() for batch in pool.map(batches.__getitem__, range(400))] == expected


def test_batches_are_shared_so_they_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RecentBatches(Recorded())[0][0] = 1


def test_pickle() -> None:
    batches = RecentBatches(SequencedReplacement(1000, 40, seed=3))
    batches[5]
    assert pickle.loads(pickle.dumps(batches))[7].tolist() == stream(7, 8)[0]
