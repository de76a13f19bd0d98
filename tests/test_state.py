"""A state is small and plain, and never fits another order."""

from __future__ import annotations

import json

import pytest
from contracts import CASES

from replenish import RandomReshuffling, SequencedReplacement, state


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


def test_an_order_may_not_use_the_states_own_names() -> None:
    class Clashing(RandomReshuffling):
        def config(self) -> dict[str, int | str]:
            return {**super().config(), "step": 1}

    with pytest.raises(ValueError, match="should not use the names of the state, but has .'step'"):
        state.save(Clashing(10, 2), 0)
