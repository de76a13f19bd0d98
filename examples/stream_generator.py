"""A Python generator as a stream: one that can start again, and one that cannot.

    python examples/stream_generator.py

A generator function that always yields the same items can be resumed from plain numbers: to begin at item `start`, run
it and drop the items before. If a generator cannot run again (a socket, a simulation), the state holds the items of the
pool, and the stream continues with the next item.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from replenish.stream import PooledStream


def collatz() -> Iterator[int]:
    """Yield, for 1, 2, 3, ..., the number of steps that the Collatz sequence takes to reach 1; it never ends."""
    number = 0
    while True:
        number += 1
        value, steps = number, 0
        while value != 1:
            value, steps = (value // 2 if value % 2 == 0 else 3 * value + 1), steps + 1
        yield steps


def begun_again() -> None:
    def source(start: int) -> Iterator[int]:
        return islice(collatz(), start, None)

    stream = PooledStream(source, batch_size=4, pool_size=100, seed=1)
    for _ in range(50):
        next(stream)
    state = stream.state_dict()
    resumed = PooledStream(source, batch_size=4, pool_size=100, seed=1)
    resumed.load_state_dict(state)
    assert next(resumed) == next(stream)
    print("resumed from", state)


def live() -> None:
    feed = collatz()  # stands for a source that can be read only once
    stream = PooledStream(feed, batch_size=4, pool_size=100, seed=1, store_items=True, source_continues=True)
    for _ in range(50):
        next(stream)
    state = stream.state_dict()

    # The same feed continues; no item is lost or repeated.
    resumed = PooledStream(feed, batch_size=4, pool_size=100, seed=1, store_items=True, source_continues=True)
    resumed.load_state_dict(state)
    expected = PooledStream(collatz(), batch_size=4, pool_size=100, seed=1)
    assert list(islice(resumed, 50)) == list(islice(expected, 100))[50:]
    print("resumed with", len(state["items"]["held"]), "items in the state")


if __name__ == "__main__":
    begun_again()
    live()
