"""An order's batches for callers that ask for steps nearly, but not quite, in order."""

from __future__ import annotations

from typing import Any

from replenish.draws import Int64Array
from replenish.locks import ForkSafeLock
from replenish.orders.protocol import Order

# How far behind the newest step a caller may be, and how far a first caller may be ahead of the others.
KEPT_STEPS = 128


class RecentBatches:
    """`order.batch`, with the latest batches kept, for threads that run a little ahead of each other.

    An order is fast forwards and slow backwards: one step back may cost a search for the place. Readers with
    many threads ask for steps in nearly ascending order, and the few steps that they are apart are kept here.

    Example:
        >>> from replenish import SequencedReplacement
        >>> batches = RecentBatches(SequencedReplacement(num_samples=100, batch_size=4))
        >>> late, early = batches[9], batches[2]
        >>> early.tolist() == batches.order.batch(2).tolist()
        True
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._lock = ForkSafeLock()
        self._kept: dict[int, Int64Array] = {}

    def __getitem__(self, step: int) -> Int64Array:
        with self._lock.lock:
            if step not in self._kept:
                self._draw(step)
            return self._kept[step]

    def _draw(self, step: int) -> None:
        newest = next(reversed(self._kept), -1)
        if not newest < step <= newest + KEPT_STEPS:
            self._kept.clear()
            newest = max(-1, step - KEPT_STEPS // 2)  # others may ask for steps just before the first one asked for
        for each in range(newest + 1, step + 1):
            batch = self.order.batch(each)
            batch.flags.writeable = False  # many readers have the same one
            self._kept[each] = batch
        while len(self._kept) > KEPT_STEPS:
            del self._kept[next(iter(self._kept))]

    def __getstate__(self) -> dict[str, Any]:
        return {"order": self.order}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["order"])  # type: ignore[misc]
