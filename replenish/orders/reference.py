"""The paper to the letter: a list and a queue. Slow; the oracle that the fast core is tested against.

Nothing here is random: the caller passes the slots of every step, so that both can use the same slots.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class ReferencePool:
    """Figure 1 of the paper: a list from which batches are drawn, and the queue that refills it.

    Args:
        sequence: The samples in the order in which they refill the pool. The queue repeats them without end.
        pool_size: How many slots the pool has; by default one per sample, as in the paper.

    Example:
        >>> pool = ReferencePool([1, 2, 3, 4, 5])
        >>> pool.step([1, 4])
        [2, 5]
        >>> pool.pool, list(pool.queue)
        ([1, 1, 3, 4, 2], [3, 4, 5, 1, 2])
    """

    def __init__(self, sequence: Sequence[int], pool_size: int | None = None) -> None:
        self.queue = deque(sequence)
        self.pool = [self._next_in_queue() for _ in range(len(sequence) if pool_size is None else pool_size)]

    def _next_in_queue(self) -> int:
        """Take the first sample of the queue, and put it back at the end."""
        sample = self.queue[0]
        self.queue.rotate(-1)
        return sample

    def step(self, slots: Sequence[int]) -> list[int]:
        """Draw the contents of `slots`, which are distinct, then refill them from the queue."""
        batch = [self.pool[slot] for slot in slots]
        for slot in slots:
            self.pool[slot] = self._next_in_queue()
        return batch
