"""`Order`: which samples make up the mini-batch of every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from replenish.draws import Int64Array


@runtime_checkable
class Order(Protocol):
    """The protocol of an order: a pure function from steps to mini-batches, without end.

    Whatever takes an order (the torch adapters, the lab, the diagnostics) takes any object of this shape.
    """

    @property
    def num_samples(self) -> int:
        """How many samples there are: indices are in [0, num_samples)."""
        ...

    @property
    def batch_size(self) -> int:
        """How many samples a step draws, over all processes: the paper's B."""
        ...

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch."""
        ...

    def batch(self, step: int) -> Int64Array:
        """Return the indices of one step: a pure function of the configuration and `step`."""
        ...

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Int64Array]:
        """Yield the indices of steps start, start + 1, ... up to `stop` or without end: the fast path."""
        ...

    def effective_epoch(self, step: int) -> float:
        """Return how many effective epochs the first `step` steps make."""
        ...

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that name the order completely."""
        ...


def check_order(value: object) -> Order:
    """Return `value` if it is an order, or raise; a sampler has one, which is probably meant."""
    if isinstance(value, Order):
        return value
    hint = "; give its `order`" if isinstance(getattr(value, "order", None), Order) else ""
    raise TypeError(f"order should be an Order of replenish, but got a {type(value).__name__}{hint}")
