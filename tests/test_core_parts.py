"""Small parts of the core: checks of arguments, assignment, shares of a batch, states."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from contracts import CASES
from hypothesis import given
from hypothesis import strategies as st

from replenish import RandomReshuffling, SequencedReplacement, checks, scatter, state
from replenish.sharding import check_replicas, share_of

# ---- Checks of arguments, with every kind of wrong value ----


@pytest.mark.parametrize("good", [4, np.int64(4), np.uint8(4), np.array(4), torch.tensor(4)], ids=repr)
def test_integers(good: object) -> None:
    found = checks.integer("size", good, minimum=1, maximum=5)
    assert type(found) is int
    assert found == 4


NO_INTEGERS = [4.0, 4 + 0j, True, "4", None, [4], np.float64(4), np.True_]
NO_INTEGERS += [np.array([4]), np.array(4.0), np.array(True), np.array("4")]
NO_INTEGERS += [torch.tensor([4]), torch.tensor(4.0), torch.tensor(True)]


@pytest.mark.parametrize("bad", NO_INTEGERS, ids=repr)
def test_values_that_are_not_integers(bad: object) -> None:
    with pytest.raises(TypeError, match="^size should be an int, but got .* of type"):
        checks.integer("size", bad, minimum=1)


@pytest.mark.parametrize("bad", [0, -3, 6, 2**64])
def test_integers_out_of_range(bad: int) -> None:
    with pytest.raises(ValueError, match=f"size should be at (least 1|most 5), but got {bad}"):
        checks.integer("size", bad, minimum=1, maximum=5)


@pytest.mark.parametrize("bad", ["c", "", None, 1, ["a"]])
def test_one_of_several_names(bad: object) -> None:
    assert checks.one_of("kind", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="kind should be one of a, b, but got"):
        checks.one_of("kind", bad, ("a", "b"))


# ---- Assignment to repeated places: the last value stays, even if numpy does it in another order ----


def first_value_stays(target: Any, places: Any, values: Any) -> None:
    """Assign in an order that numpy's documentation allows."""
    scatter.assign_at_once(target, places[::-1], values[::-1])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-99, 99)), max_size=60))
@pytest.mark.parametrize("assign", [scatter.assign_in_turn, scatter.assign_distinct])
def test_equals_a_loop(assign: scatter.Assign, writes: list[tuple[int, int]]) -> None:
    expected = list(range(10))
    for place, value in writes:
        expected[place] = value
    target = np.arange(10, dtype=np.int32)
    places, values = (np.array([write[part] for write in writes], dtype=np.int64) for part in (0, 1))
    assign(target, places, values.astype(np.int32))
    assert target.tolist() == expected


def test_a_wrong_assignment_is_detected() -> None:
    assert scatter.last_value_stays(scatter.assign_distinct)
    assert not scatter.last_value_stays(first_value_stays)


# ---- Shares of a batch are contiguous and equal, and their union is the batch ----


@given(st.integers(1, 50), st.integers(1, 20))
def test_shares_are_equal_and_make_up_the_batch(each: int, num_replicas: int) -> None:
    batch = list(range(each * num_replicas))
    shares = [batch[share_of(len(batch), num_replicas, rank)] for rank in range(num_replicas)]
    assert [index for share in shares for index in share] == batch
    assert {len(share) for share in shares} == {each}


def test_unequal_shares_are_an_error() -> None:
    with pytest.raises(
        ValueError, match="batch_size should be divisible by num_replicas.*batch_size=10 and num_replicas=4"
    ):
        share_of(10, 4, 0)


@pytest.mark.parametrize(
    ("num_replicas", "rank", "error", "message"),
    [
        (2, 2, ValueError, "rank should be less than num_replicas.*rank=2 and num_replicas=2"),
        (2, -1, ValueError, "rank should be at least 0, but got -1"),
        (0, 0, ValueError, "num_replicas should be at least 1, but got 0"),
        (2.0, 0, TypeError, "num_replicas should be an int, but got 2.0"),
        (2, True, TypeError, "rank should be an int, but got True"),
    ],
)
def test_bad_replicas(num_replicas: object, rank: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_replicas(num_replicas, rank)


# ---- A state has plain values, and fits only an equal order ----


@pytest.mark.parametrize("name", list(CASES))
def test_round_trip_through_json(name: str) -> None:
    order = CASES[name]()
    saved = state.save(order, 2**62)
    assert saved["version"] == 1
    assert saved["stream"] == order.config()["stream"]
    assert state.load(CASES[name](), json.loads(json.dumps(saved))) == 2**62
    with pytest.raises(ValueError, match="(seed|of) is .* in the state but .* here"):
        state.load(CASES[name](seed=1), saved)


def test_a_mismatch_names_every_differing_field_with_both_values() -> None:
    saved = state.save(SequencedReplacement(100, 10, seed=3), 5)
    with pytest.raises(ValueError, match="state should be of an equal order") as error:
        state.load(SequencedReplacement(101, 20, seed=4, pool_size=100, sequence="identity"), saved)
    for part in (
        "num_samples is 100 in the state but 101 here",
        "batch_size is 10 in the state but 20 here",
        "seed is 3 in the state but 4 here",
        "sequence is 'shuffled' in the state but 'identity' here",
        "sequence_length is 100 in the state but 101 here",
    ):
        assert part in str(error.value)
    assert "pool_size" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"stream": "v2"}, ValueError, "stream is 'v2' in the state but 'v1' here"),
        ({"version": 2}, ValueError, "state should have version 1, but got version 2"),
        ({"step": -1}, ValueError, "step in state should be at least 0, but got -1"),
        ({"step": 1.5}, TypeError, "step in state should be an int, but got 1.5"),
        ({"step": 2**62 + 1}, ValueError, "step in state should be at most"),
    ],
)
def test_altered_states(change: dict[str, object], error: type[Exception], message: str) -> None:
    order = SequencedReplacement(100, 10)
    with pytest.raises(error, match=message):
        state.load(order, {**state.save(order, 5), **change})  # type: ignore[dict-item]


def test_not_a_state() -> None:
    order = SequencedReplacement(100, 10)
    with pytest.raises(TypeError, match="state should be a dict that state_dict.. returned, but got a list"):
        state.load(order, [1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got the fields .'epoch'"):
        state.load(order, {"epoch": 3})
    missing = state.save(order, 5)
    del missing["pool_size"]
    with pytest.raises(ValueError, match="pool_size is 'missing' in the state but 100 here"):
        state.load(order, missing)


def test_an_order_may_not_use_the_field_names_of_states() -> None:
    class Clashing(RandomReshuffling):
        def config(self) -> dict[str, int | str]:
            return {**super().config(), "step": 1}

    with pytest.raises(ValueError, match="should not use the names of the state, but has .'step'"):
        state.save(Clashing(10, 2), 0)
