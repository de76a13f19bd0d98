"""Assignment to repeated places: the last value stays, whatever numpy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import scatter


def first_value_stays(target: Any, places: Any, values: Any) -> None:
    """What a numpy might do that keeps to its documentation."""
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


def test_the_trial_tells_a_wrong_way_from_a_right_one() -> None:
    assert scatter.last_value_stays(scatter.assign_distinct)
    assert not scatter.last_value_stays(first_value_stays)
    assert scatter.choose(first_value_stays, scatter.assign_distinct) is scatter.assign_distinct
    assert scatter.choose(scatter.assign_distinct, first_value_stays) is scatter.assign_distinct
