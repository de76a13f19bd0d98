"""The contract, on every order; and the arguments that all orders share."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from contracts import ORDERS, MakeOrder, OrderContract, as_lists

import replenish
from replenish import Order

CLASSES = [
    replenish.SequencedReplacement,
    replenish.RandomReshuffling,
    replenish.ShuffleOnce,
    replenish.FlipFlop,
    replenish.BatchedReplacement,
    replenish.IndependentDraws,
]


class TestEveryOrder(OrderContract):
    @pytest.fixture(params=list(ORDERS))
    def make(self, request: pytest.FixtureRequest) -> MakeOrder:
        return ORDERS[request.param]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("name", ["num_samples", "batch_size"])
@pytest.mark.parametrize("bad", [64.0, True, "64", None, np.True_, [64]])
def test_sizes_of_wrong_type(cls: type[Order], name: str, bad: object) -> None:
    sizes = {"num_samples": 100, "batch_size": 10, name: bad}
    with pytest.raises(TypeError, match=f"{name} should be an int, but got"):
        cls(**sizes)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("name", ["num_samples", "batch_size"])
@pytest.mark.parametrize("bad", [0, -3])
def test_sizes_not_positive(cls: type[Order], name: str, bad: int) -> None:
    sizes = {"num_samples": 100, "batch_size": 10, name: bad}
    with pytest.raises(ValueError, match=f"{name} should be at least 1, but got {bad}"):
        cls(**sizes)


@pytest.mark.parametrize("cls", CLASSES)
def test_numpy_integers_are_integers(cls: type[Order]) -> None:
    order = cls(np.int64(100), np.int32(10), seed=np.uint8(3))
    assert type(order.num_samples) is int
    assert order == cls(100, 10, seed=3)


@pytest.mark.parametrize("cls", CLASSES)
def test_options_are_keywords(cls: type[Order]) -> None:
    with pytest.raises(TypeError, match="positional"):
        cls(100, 10, 0)


@pytest.mark.parametrize("name", list(ORDERS))
def test_threads_may_share_an_order(name: str) -> None:
    order = ORDERS[name]()
    expected = as_lists(order.batches(0, 60))
    wrong: list[int] = []

    def read(steps: list[int]) -> None:
        wrong.extend(step for step in steps if order.batch(step).tolist() != expected[step])

    threads = [
        threading.Thread(target=read, args=(np.random.default_rng(k).permutation(60).tolist(),)) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
