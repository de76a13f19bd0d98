"""The pooled stream: its batches follow the definition, it ends properly, and it resumes exactly."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from typing import Any

import numpy as np
import pytest
from contracts import as_lists
from hypothesis import given
from hypothesis import strategies as st

from replenish import SequencedReplacement
from replenish.draws import DistinctDraws
from replenish.stream import PooledStream
from replenish.stream.window import drain_order

# (N, B, M): pools smaller than, equal to and larger than the source; one batch per pool; batches of one.
SIZES = [(97, 8, 97), (97, 8, 20), (50, 16, 151), (30, 30, 30), (40, 1, 40), (5, 3, 11), (1, 1, 1), (300, 7, 7)]


class Forward:
    """An iterable that can be read several times, but only from its beginning."""

    def __init__(self, length: int) -> None:
        self.length_of_a_pass = length

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.length_of_a_pass))


def seekable(length: int) -> Callable[[int], Iterator[int]]:
    return lambda start: iter(range(start, length))


# Functions that make a source of the ints below their argument, and the options that its state needs.
SOURCES: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "range": (range, {}),
    "list": (lambda length: list(range(length)), {}),
    "array": (np.arange, {}),
    "callable": (seekable, {}),
    "callable-items": (seekable, {"store_items": True}),
    "forward-items": (Forward, {"store_items": True}),
}


@pytest.fixture(params=list(SOURCES))
def kind(request: pytest.FixtureRequest) -> tuple[Callable[[int], Any], dict[str, Any]]:
    return SOURCES[request.param]


def batches(stream: Iterator[list[int]], number: int) -> list[list[int]]:
    return [list(map(int, batch)) for batch in islice(stream, number)]


def reference_with_an_end(length: int, batch_size: int, pool_size: int, seed: int) -> list[list[int]]:
    """The literal definition of `repeat=False`: slots are full or None, and are filled and drawn one by one."""
    source = iter(range(length))
    slots: list[int | None] = [next(source, None) for _ in range(pool_size)]
    draws = DistinctDraws(pool_size, batch_size, seed)
    found = []
    while None not in slots:
        block, row = divmod(len(found), draws.steps_per_block)
        drawn = draws.block(block)[row].tolist()
        found.append([slots[slot] for slot in drawn])
        for slot in drawn:
            slots[slot] = next(source, None)
    left = [item for item in slots if item is not None]
    order = [left[place] for place in drain_order(seed, length, len(left))]
    found += [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    return found  # type: ignore[return-value]


class TestBatches:
    @pytest.mark.parametrize(("length", "batch_size", "pool_size"), SIZES)
    def test_equal_sequenced_replacement(self, kind: Any, length: int, batch_size: int, pool_size: int) -> None:
        order = SequencedReplacement(length, batch_size, seed=3, pool_size=pool_size, sequence="identity")
        stream = PooledStream(kind[0](length), batch_size=batch_size, pool_size=pool_size, seed=3)
        assert batches(stream, 200) == as_lists(order.batches(0, 200))

    @pytest.mark.parametrize(("length", "batch_size", "pool_size"), SIZES)
    def test_with_an_end_equal_the_definition(self, kind: Any, length: int, batch_size: int, pool_size: int) -> None:
        stream = PooledStream(kind[0](length), batch_size=batch_size, pool_size=pool_size, seed=5, repeat=False)
        assert batches(stream, 10**6) == reference_with_an_end(length, batch_size, pool_size, seed=5)
        with pytest.raises(StopIteration):
            next(stream)

    @given(st.data())
    def test_every_item_once_for_any_sizes(self, data: st.DataObject) -> None:
        length = data.draw(st.integers(1, 120))
        pool_size = data.draw(st.integers(1, 80))
        batch_size = data.draw(st.integers(1, pool_size))
        seed = data.draw(st.integers(0, 2**63 - 1))
        stream = PooledStream(Forward(length), batch_size=batch_size, pool_size=pool_size, seed=seed, repeat=False)
        found = list(stream)
        assert sorted(chain.from_iterable(found)) == list(range(length))
        assert [len(batch) for batch in found[:-1]] == [batch_size] * (len(found) - 1)
        assert len(found) == -(-length // batch_size)
        assert found == reference_with_an_end(length, batch_size, pool_size, seed)

    def test_items_may_be_any_objects(self) -> None:
        """Items are not inspected, copied or converted to arrays."""
        items: list[Any] = [None, [1, 2], np.arange(3), {"a": 1}, "text", (), float("nan"), StopIteration]
        stream = PooledStream(items, batch_size=2, pool_size=3, repeat=False)
        found = list(chain.from_iterable(stream))
        assert sorted(map(id, found)) == sorted(map(id, items))

    def test_reads_no_more_than_it_needs(self) -> None:
        given = []

        def source() -> Iterator[int]:
            for item in count():
                given.append(item)
                yield item

        stream = PooledStream(source(), batch_size=4, pool_size=10)
        assert given == []
        for step in range(50):
            next(stream)
            assert len(given) == 10 + 4 * step

    def test_memory_does_not_grow_with_the_stream(self) -> None:
        def peak(items: int) -> int:
            tracemalloc.start()
            for _ in PooledStream(seekable(items), batch_size=16, pool_size=500, repeat=False):
                pass
            return tracemalloc.get_traced_memory()[1]

        try:
            peak(10_000)  # allocates what is kept
            assert peak(100_000) < 1.1 * peak(10_000)
        finally:
            tracemalloc.stop()

    def test_the_drain_is_uniform(self) -> None:
        """A source shorter than the pool is shuffled as a whole: each item is equally often in each place."""
        table = np.zeros((5, 5))
        for seed in range(2000):
            found = chain.from_iterable(PooledStream(range(5), batch_size=2, pool_size=9, seed=seed, repeat=False))
            table[np.arange(5), list(found)] += 1
        assert np.all(np.abs(table - 400) < 5 * np.sqrt(400))


class TestResume:
    @pytest.mark.parametrize("repeat", [True, False])
    @pytest.mark.parametrize(("length", "batch_size", "pool_size"), [(97, 8, 20), (23, 4, 23), (5, 3, 11), (9, 1, 4)])
    def test_at_every_step(self, kind: Any, repeat: bool, length: int, batch_size: int, pool_size: int) -> None:
        make, options = kind
        options = {"batch_size": batch_size, "pool_size": pool_size, "seed": 2, "repeat": repeat, **options}
        expected = batches(PooledStream(make(length), **options), 60)
        running = PooledStream(make(length), **options)
        for step in range(len(expected) + 1):
            state = running.state_dict()
            if make is not np.arange:
                state = json.loads(json.dumps(state))
            resumed = PooledStream(make(length), **options)
            resumed.load_state_dict(state)
            assert resumed.step == step
            assert resumed.state_dict() == state  # before anything is read
            assert batches(resumed, 60 - step) == expected[step:]
            if step < len(expected):
                next(running)

    @given(st.data())
    def test_for_any_sizes_and_more_than_once(self, data: st.DataObject) -> None:
        length = data.draw(st.integers(1, 50))
        pool_size = data.draw(st.integers(1, 60))
        repeat = data.draw(st.booleans())
        name = data.draw(st.sampled_from(["callable", "callable-items", "forward-items"]))
        options = {
            "batch_size": data.draw(st.integers(1, pool_size)),
            "pool_size": pool_size,
            "seed": data.draw(st.integers(0, 5)),
            "repeat": repeat,
            "seek_cost": data.draw(st.integers(1, 40)),
            **SOURCES[name][1],
        }
        make = SOURCES[name][0]
        expected = batches(PooledStream(make(length), **options), 40)
        found: list[list[int]] = []
        state: dict[str, Any] | None = None
        while len(found) < len(expected):
            stream = PooledStream(make(length), **options)
            if state is not None:
                stream.load_state_dict(state)
            found += batches(stream, min(data.draw(st.integers(0, 20)) + 1, len(expected) - len(found)))
            state = stream.state_dict()
        assert found == expected

    def test_state_of_a_seekable_source_is_plain_and_small(self) -> None:
        stream = PooledStream(seekable(10**6), batch_size=64, pool_size=5000)
        for _ in range(100):
            next(stream)
        state = stream.state_dict()
        assert all(type(name) is str and type(value) in (int, str) for name, value in state.items())
        assert len(json.dumps(state)) < 300

    def test_a_far_seek_reads_only_a_window(self) -> None:
        """At step 10**9 of an endless source, it reads about M (ln M + 1) items, not 10**10."""
        given = 0

        def source(start: int) -> Iterator[int]:
            nonlocal given
            for item in count(start):
                given += 1
                yield item

        stream = PooledStream(source, batch_size=10, pool_size=1000, seek_cost=10**9)
        stream.seek(10**9)
        far = next(stream)
        assert max(far) < 1000 + 10**10
        assert given < 1000 * (np.log(1000) + 8)
        jumping = PooledStream(source, batch_size=10, pool_size=1000, seek_cost=1)
        jumping.seek(10**9)
        given = 0
        assert next(jumping) == far
        assert given <= 1000 + 10 + 1  # the pool, a refill, and one item to check that the source is long enough

    @pytest.mark.parametrize("repeat", [True, False])
    def test_seek_without_a_known_length(self, repeat: bool) -> None:
        options: dict[str, Any] = {"batch_size": 4, "pool_size": 11, "repeat": repeat}
        expected = batches(PooledStream(seekable(30), **options), 40)
        for step in range(len(expected) + 1):
            stream = PooledStream(seekable(30), **options)
            stream.seek(step)
            assert stream.step == step
            assert batches(stream, 40 - step) == expected[step:]

    @pytest.mark.parametrize("step", [0, 1, 17, 40])
    def test_state_after_seek_with_items(self, step: int) -> None:
        """No items were read, so the state has none; they are read again."""
        options: dict[str, Any] = {"batch_size": 5, "pool_size": 20, "store_items": True}
        expected = batches(PooledStream(range(50), **options), 60)
        sought, resumed = (PooledStream(range(50), **options) for _ in range(2))
        batches(sought, 7)
        sought.seek(step)
        resumed.load_state_dict(sought.state_dict())
        assert batches(resumed, 10) == batches(sought, 10) == expected[step : step + 10]

    def test_a_live_source_continues(self) -> None:
        expected = batches(PooledStream(range(1000), batch_size=4, pool_size=30), 100)
        live = iter(range(1000))
        options: dict[str, Any] = {"batch_size": 4, "pool_size": 30, "store_items": True, "source_continues": True}
        found: list[list[int]] = []
        state: dict[str, Any] | None = None
        for steps in (0, 1, 19, 30, 50):
            stream = PooledStream(live, **options)
            if state is not None:
                stream.load_state_dict(state)
            found += batches(stream, steps)
            state = stream.state_dict()
        assert found == expected

    def test_items_that_a_new_iterator_repeats_are_skipped(self) -> None:
        options: dict[str, Any] = {"batch_size": 4, "pool_size": 30, "store_items": True}
        stream = PooledStream(iter(range(1000)), **options)
        batches(stream, 20)
        resumed = PooledStream(iter(range(1000)), **options)
        resumed.load_state_dict(stream.state_dict())
        assert batches(resumed, 20) == batches(stream, 20)
        resumed.load_state_dict(stream.state_dict())
        with pytest.raises(ValueError, match="source should be at its beginning .* build a new stream"):
            next(resumed)

    def test_passes_of_a_forward_source_may_differ_in_length(self) -> None:
        class Growing:
            passes = 0

            def __iter__(self) -> Iterator[int]:
                self.passes += 1
                return iter(range(10 * self.passes))

        stream = PooledStream(Growing(), batch_size=2, pool_size=5, store_items=True)
        assert len(batches(stream, 100)) == 100
