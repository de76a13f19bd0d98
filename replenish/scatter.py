"""Assignment to places that may repeat, where the last value stays.

The core refills a run of slots in one such assignment. `target[places] = values` does this in every numpy that we know,
but numpy's documentation calls the result of setting an element twice unpredictable. So this module tests it once, at
import, and takes a slower way if the test fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array

Assign = Callable[[npt.NDArray[Any], Int64Array, npt.NDArray[Any]], None]


def assign_at_once(target: npt.NDArray[Any], places: Int64Array, values: npt.NDArray[Any]) -> None:
    """Assign with numpy's own indexing."""
    target[places] = values


def assign_distinct(target: npt.NDArray[Any], places: Int64Array, values: npt.NDArray[Any]) -> None:
    """Assign only the last value of every place, so that each place is set once."""
    distinct, from_the_end = np.unique(places[::-1], return_index=True)
    target[distinct] = values[len(places) - 1 - from_the_end]


def last_value_stays(assign: Assign) -> bool:
    """Return whether `assign` leaves the last value, by setting 64 places 16 times each, in turn and in a row."""
    every, values = np.arange(64), np.arange(64 * 16)
    for places, expected in [(np.tile(every, 16), values[-64:]), (np.repeat(every, 16), values[15::16])]:
        for dtype in (np.int32, np.int64):
            target = np.zeros(64, dtype=dtype)
            assign(target, places, values.astype(dtype))
            if not (target == expected).all():
                return False
    return True


assign_in_turn: Assign = assign_at_once if last_value_stays(assign_at_once) else assign_distinct
