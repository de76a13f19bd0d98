"""One battery of tests that every order must pass."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

from replenish.orders import ORDERS, Mixture, Order, Skipping, build_order, weighted_sequence

MakeOrder = Callable[..., Order]  # called with seed=...

# Facts about the data that some orders need, for 97 samples.
FACTS: dict[str, Any] = {
    "labels": [number * number % 97 % 5 for number in range(97)],
    "weights": [number % 7 for number in range(97)],
    "lengths": [10 + number * 37 % 90 for number in range(97)],
    "shard_size": 10,
}


def facts(name: str) -> dict[str, Any]:
    """Return the facts that an order requires."""
    return {need: FACTS[need] for need in ORDERS[name].needs}


# Sizes are chosen so that blocks, epochs and pools end at different steps. Every registered order is included.
CASES: dict[str, MakeOrder] = {name: partial(build_order, name, 97, 8, **facts(name)) for name in ORDERS}
CASES |= {
    "srs-identity": partial(build_order, "srs", 97, 8, sequence="identity"),
    "srs-small-pool": partial(build_order, "srs", 97, 8, pool_size=20),
    "srs-large-pool": partial(build_order, "srs", 50, 16, pool_size=151),
    "srs-whole-pool": partial(build_order, "srs", 30, 30),
    "srs-one": partial(build_order, "srs", 40, 1),
    "srs-computed-sequence": partial(build_order, "srs", 5_003, 64),
    "srs-weighted": partial(build_order, "srs", 12, 4, pool_size=30, sequence=weighted_sequence(range(12), 55)),
    "srs-reshuffled": partial(build_order, "srs", 97, 8, sequence="reshuffled"),
    "srs-reshuffled-computed": partial(build_order, "srs", 5_003, 64, pool_size=2_000, sequence="reshuffled"),
    "buffer-small": partial(build_order, "shuffle-buffer", 97, 8, buffer_size=9, shard_size=20),
    "buffer-one": partial(build_order, "shuffle-buffer", 97, 8, buffer_size=1, shard_size=5, drop_last=True),
    "block-shuffle-staggered": partial(
        build_order, "block-shuffle", 97, 8, shard_size=[40, 7, 30, 20], window=25, staggered=True
    ),
    "jitter-narrow": partial(build_order, "jitter", 97, 8, shard_size=[40, 7, 30, 20], window=25),
    "poisson-most": partial(build_order, "poisson", 30, 24),
    "poisson-rare": partial(build_order, "poisson", 97, 1),
    "bins-uneven": partial(build_order, "balls-in-bins", 97, 60),
    "stratified-srs": partial(build_order, "stratified", 97, 8, labels=FACTS["labels"], within="srs"),
    "stratified-balanced": partial(build_order, "stratified", 97, 8, labels=FACTS["labels"], weights="balanced"),
    "stratified-weights": partial(
        build_order, "stratified", 97, 3, labels=FACTS["labels"], weights=[0.1, 0, 0.7, 0.15, 0.05]
    ),
    "repeated-twice": partial(build_order, "repeated", 97, 8, repeats=2, drop_last=True),
    "length-grouped-sorted": partial(
        build_order, "length-grouped", 97, 8, lengths=FACTS["lengths"], window=5, shuffle_batches=False
    ),
    "paired-reversal-blocks": partial(build_order, "paired-reversal", 97, 8, block_size=10),
    "block-reshuffling-small": partial(build_order, "block-reshuffling", 97, 8, block_size=6, drop_last=True),
    "reshuffling-drop-last": partial(build_order, "reshuffling", 97, 8, drop_last=True),
    "reshuffling-computed": partial(build_order, "reshuffling", 97, 8, computed=True),
    "reshuffling-computed-large": partial(build_order, "reshuffling", 5_003, 64, computed=True, drop_last=True),
    "mixture": partial(Mixture, [50, 40, 7], [5, 2, 1.5], 8),
    "mixture-stages": partial(Mixture, [5_003, 3, 40], [1, 0, 1], 64, stages=[(7, [0.2, 0.7, 0.1]), (100, None)]),
    "mixture-orders": lambda seed=0: Mixture(
        [60, 30, 20],
        None,
        8,
        seed=seed,
        orders=[build_order("srs", 60, 4, seed=seed), None, build_order("flip-flop", 20, 3, seed=seed)],
    ),
    "skipping": lambda seed=0: Skipping(build_order("srs", 96, 8, seed=seed), [(3, 9), (60, 61), (10**6, 10**9)]),
    "skipping-reshuffling": lambda seed=0: Skipping(build_order("reshuffling", 96, 8, seed=seed), [(0, 5), (13, 30)]),
    "rebatched": lambda seed=0: build_order("reshuffling", 96, 8, seed=seed).rebatched(13, at_step=7),
    "rebatched-mixture": lambda seed=0: Mixture([50, 40], [2, 1], 8, seed=seed).rebatched(20, at_step=30),
    "independent-large-batch": partial(build_order, "independent", 97, 120),
}


def as_lists(batches: Iterable[Any]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


class OrderContract:
    """Subclass it with a fixture `make` that builds orders."""

    STEPS = 260

    def test_is_an_order(self, make: MakeOrder) -> None:
        assert isinstance(make(), Order)

    def test_batches_are_int64_arrays_in_range(self, make: MakeOrder) -> None:
        order = make()
        for step, batch in enumerate(order.batches(0, self.STEPS)):
            assert batch.dtype == np.int64
            assert batch.ndim == 1
            if getattr(order, "batch_sizes_vary", False):
                assert len(batch) <= order.num_samples
            else:
                was_rebatched = step >= getattr(order, "at_step", 0)  # earlier steps have the old batch size
                size = order.batch_size if was_rebatched else order.order.batch_size  # type: ignore[attr-defined]
                assert 0 < len(batch) <= size
                if (step + 1) % order.steps_per_epoch:
                    assert len(batch) == size
            assert ((batch >= 0) & (batch < order.num_samples)).all()

    def test_depends_on_the_arguments_only(self, make: MakeOrder) -> None:
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

    def test_writing_to_a_batch_changes_nothing(self, make: MakeOrder) -> None:
        order = make()
        expected = order.batch(3).tolist()
        order.batch(3)[:] = -1
        assert order.batch(3).tolist() == expected

    def test_writing_to_yielded_batches_changes_nothing(self, make: MakeOrder) -> None:
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
        far = 100 * order.steps_per_epoch  # after any change of the batch size
        later = order.effective_epoch(far + 3 * order.steps_per_epoch)
        assert later - order.effective_epoch(far) == pytest.approx(3.0)

    def test_config_is_plain_and_complete(self, make: MakeOrder) -> None:
        config = make().config()
        assert all(type(name) is str and type(value) in (int, str) for name, value in config.items())
        assert json.loads(json.dumps(config)) == config == make().config()
        assert config["stream"] in ("v1", "computed-v1", "mixture-v1")
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
        assert "num_samples=" in repr(make()) or "sizes=" in repr(make())
        assert "seed=0" in repr(make())

    def test_bad_steps_are_named(self, make: MakeOrder) -> None:
        for call in (make().batch, make().batches, make().effective_epoch):
            with pytest.raises(ValueError, match=r"(step|start) should be at most .*, but got"):
                call(2**62 + 1)
            with pytest.raises(TypeError, match="(step|start) should be an int, but got 1.0"):
                call(1.0)

    def test_bad_seeds_are_named(self, make: MakeOrder) -> None:
        with pytest.raises(ValueError, match=f"seed should be at most .*got {2**63}"):
            make(seed=2**63)
        with pytest.raises(TypeError, match="seed should be an int, but got None"):
            make(seed=None)
