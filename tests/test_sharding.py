"""Contiguous, equal shares whose union is the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish.sharding import check_replicas, share_of


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
