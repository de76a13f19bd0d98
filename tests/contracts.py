"""One battery that every order, and every adapter of one, must pass."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np
import pytest

import replenish
from replenish import Order

MakeOrder = Callable[..., Order]  # called with seed=...

# Sizes are chosen so that blocks, epochs and pools end at different steps.
ORDERS: dict[str, MakeOrder] = {
    "srs": lambda seed=0: replenish.SequencedReplacement(97, 8, seed=seed),
    "srs-identity": lambda seed=0: replenish.SequencedReplacement(97, 8, seed=seed, sequence="identity"),
    "srs-small-pool": lambda seed=0: replenish.SequencedReplacement(97, 8, seed=seed, pool_size=20),
    "srs-large-pool": lambda seed=0: replenish.SequencedReplacement(50, 16, seed=seed, pool_size=151),
    "srs-whole-pool": lambda seed=0: replenish.SequencedReplacement(30, 30, seed=seed),
    "srs-one": lambda seed=0: replenish.SequencedReplacement(40, 1, seed=seed),
    "srs-computed-sequence": lambda seed=0: replenish.SequencedReplacement(5_003, 64, seed=seed),
    "srs-weighted": lambda seed=0: replenish.SequencedReplacement(
        12, 4, seed=seed, pool_size=30, sequence=replenish.weighted_sequence(range(12), 55)
    ),
    "reshuffling": lambda seed=0: replenish.RandomReshuffling(97, 8, seed=seed),
    "reshuffling-drop-last": lambda seed=0: replenish.RandomReshuffling(97, 8, seed=seed, drop_last=True),
    "shuffle-once": lambda seed=0: replenish.ShuffleOnce(97, 8, seed=seed),
    "flip-flop": lambda seed=0: replenish.FlipFlop(97, 8, seed=seed),
    "batched-replacement": lambda seed=0: replenish.BatchedReplacement(97, 8, seed=seed),
    "independent-draws": lambda seed=0: replenish.IndependentDraws(97, 120, seed=seed),
}


def as_lists(batches: Iterable[Any]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


class OrderContract:
    """Subclass it with a fixture `make`, a maker of orders."""

    STEPS = 260

    def test_is_an_order(self, make: MakeOrder) -> None:
        assert isinstance(make(), Order)

    def test_batches_are_int64_arrays_in_range(self, make: MakeOrder) -> None:
        order = make()
        for step, batch in enumerate(order.batches(0, self.STEPS)):
            assert batch.dtype == np.int64
            assert batch.ndim == 1
            assert 0 < len(batch) <= order.batch_size
            if (step + 1) % order.steps_per_epoch:
                assert len(batch) == order.batch_size
            assert batch.min() >= 0
            assert batch.max() < order.num_samples

    def test_depends_on_the_arguments_alone(self, make: MakeOrder) -> None:
        assert as_lists(make().batches(0, 40)) == as_lists(make().batches(0, 40))

    def test_seeds_differ(self, make: MakeOrder) -> None:
        streams = {json.dumps(as_lists(make(seed=seed).batches(0, 20))) for seed in (0, 1, 2, 2**63 - 1)}
        assert len(streams) == 4

    def test_next_epoch_is_not_the_next_seed(self, make: MakeOrder) -> None:
        per_epoch = make().steps_per_epoch
        next_epoch = as_lists(make(seed=0).batches(per_epoch, 2 * per_epoch))
        assert next_epoch != as_lists(make(seed=1).batches(0, per_epoch))

    def test_batch_is_pure(self, make: MakeOrder) -> None:
        expected = as_lists(make().batches(0, self.STEPS))
        order = make()
        for step in np.random.default_rng(0).integers(0, self.STEPS, 60).tolist():
            assert order.batch(step).tolist() == expected[step]
        assert [order.batch(step).tolist() for step in range(30)] == expected[:30]

    def test_begins_at_any_step(self, make: MakeOrder) -> None:
        expected = as_lists(make().batches(0, self.STEPS))
        for start in (0, 1, 7, make().steps_per_epoch, self.STEPS // 2, self.STEPS - 1):
            assert as_lists(islice(make().batches(start), self.STEPS - start)) == expected[start:]

    @pytest.mark.parametrize("step", [10**6, 10**9 + 7, 2**62 - 1, 2**62])
    def test_far_steps(self, make: MakeOrder, step: int) -> None:
        order = make()
        before, at = as_lists(islice(make().batches(step - 1), 2))
        assert order.batch(step).tolist() == at
        assert order.batch(step - 1).tolist() == before

    def test_iterators_are_independent(self, make: MakeOrder) -> None:
        order = make()
        expected = as_lists(order.batches(0, 30))
        one, two = order.batches(), order.batches()
        seen = []
        for step in range(30):
            seen.append(next(one).tolist())
            if step % 3 == 0:
                next(two)
            order.batch(29 - step)
        assert seen == expected

    def test_batch_is_the_callers_own(self, make: MakeOrder) -> None:
        order = make()
        expected = order.batch(3).tolist()
        order.batch(3)[:] = -1
        assert order.batch(3).tolist() == expected

    def test_writing_to_what_was_yielded_changes_nothing(self, make: MakeOrder) -> None:
        order = make()
        expected = as_lists(order.batches(0, self.STEPS))
        seen = []
        for batch in order.batches(0, self.STEPS):
            seen.append(batch.tolist())
            batch[:] = -1
        assert seen == expected

    def test_empty_range(self, make: MakeOrder) -> None:
        assert list(make().batches(5, 5)) == []
        assert list(make().batches(5, 3)) == []

    def test_effective_epoch(self, make: MakeOrder) -> None:
        order = make()
        assert order.effective_epoch(0) == 0.0
        assert order.effective_epoch(3 * order.steps_per_epoch) == 3.0

    def test_config_is_plain_and_complete(self, make: MakeOrder) -> None:
        config = make().config()
        assert all(type(name) is str and type(value) in (int, str) for name, value in config.items())
        assert json.loads(json.dumps(config)) == config == make().config()
        assert config["stream"] == "v1"
        assert config != make(seed=1).config()

    def test_pickle_and_copy(self, make: MakeOrder) -> None:
        order = make()
        expected = as_lists(order.batches(0, 20))
        order.batch(7)
        for clone in (pickle.loads(pickle.dumps(order)), copy.deepcopy(order), copy.copy(order)):
            assert clone == order
            assert hash(clone) == hash(order)
            assert as_lists(clone.batches(0, 20)) == expected
            assert clone.batch(7).tolist() == expected[7]
        assert order != make(seed=1)

    def test_repr_names_the_arguments(self, make: MakeOrder) -> None:
        assert "num_samples=" in repr(make())
        assert "seed=0" in repr(make())

    @pytest.mark.parametrize("bad", [-1, 2**62 + 1])
    def test_step_out_of_range(self, make: MakeOrder, bad: int) -> None:
        for call in (make().batch, make().batches, make().effective_epoch):
            with pytest.raises(ValueError, match=f"(step|start) should be at (least|most) .*{bad}"):
                call(bad)

    @pytest.mark.parametrize("bad", [1.0, True, "1", None])
    def test_step_of_wrong_type(self, make: MakeOrder, bad: Any) -> None:
        for call in (make().batch, make().batches, make().effective_epoch):
            with pytest.raises(TypeError, match="(step|start) should be an int, but got"):
                call(bad)

    @pytest.mark.parametrize("bad", [-1, 2**63, 2**64])
    def test_seed_out_of_range(self, make: MakeOrder, bad: int) -> None:
        with pytest.raises(ValueError, match=f"seed should be at (least|most) .*got {bad}"):
            make(seed=bad)

    @pytest.mark.parametrize("bad", [0.0, True, "0", None, np.array([1])])
    def test_seed_of_wrong_type(self, make: MakeOrder, bad: object) -> None:
        with pytest.raises(TypeError, match="seed should be an int, but got"):
            make(seed=bad)
