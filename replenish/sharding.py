"""How the processes of a run divide a global batch: contiguous, equal shares.

Every process draws the same global batch and takes its share. So the stream of global batches does not depend on the
number of processes, and a run can resume on a different number.
"""

from __future__ import annotations

from replenish import checks
from replenish.orders.protocol import Order


def check_replicas(num_replicas: object, rank: object) -> tuple[int, int]:
    """Return (num_replicas, rank) as ints, or raise."""
    replicas = checks.integer("num_replicas", num_replicas, minimum=1)
    number = checks.integer("rank", rank, minimum=0)
    if number >= replicas:
        raise ValueError(
            f"rank should be less than num_replicas, ranks counting from 0, but got rank={number} and "
            f"num_replicas={replicas}"
        )
    return replicas, number


def share_of(size: int, num_replicas: int, rank: int, *, name: str = "batch_size") -> slice:
    """Return the slice of a batch of `size` that belongs to `rank`, or raise if the shares would be unequal.

    Example:
        >>> share_of(8, num_replicas=4, rank=1)
        slice(2, 4, None)
    """
    each, left = divmod(size, num_replicas)
    if left:
        raise ValueError(
            f"{name} should be divisible by num_replicas, so that all processes get equal shares, but got "
            f"{name}={size} and num_replicas={num_replicas}"
        )
    return slice(rank * each, (rank + 1) * each)


def check_shares(order: Order, num_replicas: int) -> None:
    """Raise if the batches of an order, including a short last one of an epoch, do not divide into equal shares."""
    if num_replicas > 1 and getattr(order, "batch_sizes_vary", False):
        raise ValueError(
            f"num_replicas should be 1 for {type(order).__name__}, whose batches have random sizes and do not divide "
            f"into equal shares, but got num_replicas={num_replicas}"
        )
    share_of(order.batch_size, num_replicas, 0)
    last = getattr(order, "last_batch_size", order.batch_size)  # only orders that keep a short last batch have it
    share_of(last, num_replicas, 0, name="the size of the last batch of an epoch")
