"""`Order`: which samples make up the mini-batch of every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from replenish.draws import Int64Array


@runtime_checkable
class Order(Protocol):
    """The protocol of an order: an endless stream of mini-batches, a pure function of the step.

    The torch adapters, the lab and the diagnostics accept any object with these members.
    """

    @property
    def num_samples(self) -> int:
        """How many samples there are: indices are in [0, num_samples)."""
        ...

    @property
    def batch_size(self) -> int:
        """How many samples each step draws, over all processes: the paper's B."""
        ...

    @property
    def steps_per_epoch(self) -> int:
        """The number of steps per effective epoch."""
        ...

    def batch(self, step: int) -> Int64Array:
        """Return the indices of one step: a pure function of the configuration and `step`."""
        ...

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Int64Array]:
        """Yield the indices of steps start, start + 1, ..., stop - 1, or without end: the fast path."""
        ...

    def effective_epoch(self, step: int) -> float:
        """Return the number of effective epochs in the first `step` steps."""
        ...

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely."""
        ...


def check_order(value: object) -> Order:
    """Return `value` if it is an order, else raise TypeError, with a hint if it is a sampler."""
    if isinstance(value, Order):
        return value
    hint = "; give its `order`" if isinstance(getattr(value, "order", None), Order) else ""
    raise TypeError(f"order should be an Order of replenish, but got a {type(value).__name__}{hint}")
