"""The checks of arguments: every kind of wrong value, once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from replenish import checks


@pytest.mark.parametrize("good", [4, np.int64(4), np.uint8(4), np.array(4), torch.tensor(4)], ids=repr)
def test_integers(good: object) -> None:
    found = checks.integer("size", good, minimum=1, maximum=5)
    assert type(found) is int
    assert found == 4


NO_INTEGERS = [4.0, 4 + 0j, True, "4", None, [4], np.float64(4), np.True_]
NO_INTEGERS += [np.array([4]), np.array(4.0), np.array(True), np.array("4")]
NO_INTEGERS += [torch.tensor([4]), torch.tensor(4.0), torch.tensor(True)]


@pytest.mark.parametrize("bad", NO_INTEGERS, ids=repr)
def test_what_is_no_integer(bad: object) -> None:
    with pytest.raises(TypeError, match="^size should be an int, but got .* of type"):
        checks.integer("size", bad, minimum=1)


@pytest.mark.parametrize("bad", [0, -3, 6, 2**64])
def test_integers_out_of_range(bad: int) -> None:
    with pytest.raises(ValueError, match=f"size should be at (least 1|most 5), but got {bad}"):
        checks.integer("size", bad, minimum=1, maximum=5)


@pytest.mark.parametrize("bad", ["c", "", None, 1, ["a"]])
def test_what_is_none_of_the_names(bad: object) -> None:
    assert checks.one_of("kind", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="kind should be one of a, b, but got"):
        checks.one_of("kind", bad, ("a", "b"))
