"""Sources of a stream: invalid ones, failing ones, lines of a file, shards and their division."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish.stream import PooledStream, Shards, TextLines
from replenish.stream.shards import batches_together, share_of_source, shares_of_length


def stream(source: Any = range(50), **options: Any) -> PooledStream[Any]:
    return PooledStream(source, **{"batch_size": 5, "pool_size": 20, **options})


class TestBadInput:
    @pytest.mark.parametrize("repeat", [True, False])
    @pytest.mark.parametrize(
        "source",
        [[], np.zeros(0), iter(()), set(), lambda start: [], Shards([], list)],
        ids=["list", "array", "iterator", "set", "callable", "shards"],
    )
    def test_empty_source(self, source: Any, repeat: bool) -> None:
        with pytest.raises(ValueError, match="source should give at least one item, but it"):
            next(stream(source, repeat=repeat))

    @pytest.mark.parametrize(
        ("source", "options", "error", "message"),
        [
            (7, {}, TypeError, "source should be an iterable of items or a callable .* got 7"),
            ("data.txt", {}, TypeError, "source should be .* but got the str .* give .*TextLines"),
            (range(50), {"batch_size": 0}, ValueError, "batch_size should be at least 1, but got 0"),
            (range(50), {"seek_cost": 2.0}, TypeError, "seek_cost should be an int, but got 2.0"),
            (range(50), {"seed": -1}, ValueError, "seed should be at least 0, but got -1"),
            (range(50), {"repeat": 1}, TypeError, "repeat should be True or False, but got 1"),
            (range(50), {"pool_size": 4}, ValueError, "pool_size should be at least batch_size, .* pool_size=4"),
            (range(50), {"source_continues": True}, ValueError, "source_continues should be False .* with a range"),
        ],
    )
    def test_arguments(self, source: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            stream(source, **options)

    def test_callable_without_a_start(self) -> None:
        def numbers() -> Iterator[int]:
            yield from range(10)

        with pytest.raises(TypeError, match=r"callable of one argument, .* but got .*islice\(f\(\), start"):
            stream(numbers)

    def test_an_iterator_that_ends_cannot_repeat(self) -> None:
        running = stream(iter(range(50)))
        assert len(list(islice(running, 7))) == 7
        for message in ("it is an iterator, which ended after 50 items; .*or repeat=False", "source raised"):
            with pytest.raises((ValueError, RuntimeError), match=message):
                next(running)

    def test_passes_of_different_lengths(self) -> None:
        lengths = iter([50, 40])

        def source(start: int) -> Iterator[int]:
            return iter(range(start, next(lengths)))

        with pytest.raises(ValueError, match="same number of items in every pass, 50, but it ended after 40"):
            list(islice(stream(source), 100))

    def test_a_known_length_that_is_wrong(self) -> None:
        class Wrong:
            length = 60

            def __call__(self, start: int) -> Iterator[int]:
                return iter(range(start, 50))

        with pytest.raises(ValueError, match="same number of items in every pass, 60, but it ended after 50"):
            list(islice(stream(Wrong()), 100))


def test_threads_may_share_a_stream() -> None:
    running, found = stream(range(20_000), repeat=False), []
    threads = [threading.Thread(target=lambda: found.extend(running)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(chain.from_iterable(found)) == list(range(20_000))


class TestBadState:
    @pytest.mark.parametrize(
        ("option", "value"), [("batch_size", 4), ("pool_size", 21), ("seed", 1), ("repeat", False)]
    )
    def test_of_another_configuration(self, option: str, value: Any) -> None:
        here = {"batch_size": 5, "pool_size": 20, "seed": 0, "repeat": True}[option]
        state = stream(**{option: value}).state_dict()
        with pytest.raises(ValueError, match=f"{option} is {int(value)} in the state but {int(here)} here"):
            stream().load_state_dict(state)

    def test_of_a_longer_source_of_unknown_length(self) -> None:
        running = stream(lambda start: iter(range(start, 1000)))
        list(islice(running, 50))
        other = stream(lambda start: iter(range(start, 100)))
        other.load_state_dict(running.state_dict())
        with pytest.raises(ValueError, match="source should give the items of the run that was saved"):
            next(other)
        forward = stream(iter(range(1000)), store_items=True)
        list(islice(forward, 50))
        other = stream(iter(range(100)), store_items=True)
        other.load_state_dict(forward.state_dict())
        with pytest.raises(ValueError, match="of which 265 are to be skipped, but it ended after 100"):
            next(other)

    def test_of_a_source_that_cannot_seek(self) -> None:
        with pytest.raises(
            ValueError, match="store_items should be True .* source is a set.*callable start -> iterable"
        ):
            stream({1, 2, 3}).state_dict()
        with pytest.raises(ValueError, match="state should hold the pool's items, .*store_items=True"):
            stream({1, 2, 3}).load_state_dict(stream().state_dict())
        with pytest.raises(ValueError, match=r"source should be able to begin at a position for seek\(\)"):
            stream({1, 2, 3}).seek(3)

    def test_that_is_not_a_state(self) -> None:
        good = stream().state_dict()
        with pytest.raises(TypeError, match="state should be a dict"):
            stream().load_state_dict([1])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="state should be a dict that state_dict"):
            stream().load_state_dict({})
        with pytest.raises(ValueError, match="version"):
            stream().load_state_dict({**good, "version": 99})
        with pytest.raises(ValueError, match="step"):
            stream().load_state_dict({**good, "step": -1})
        with pytest.raises(ValueError, match="step should be at most"):
            stream().load_state_dict({**good, "step": 2**62})
        with pytest.raises(TypeError, match="length in state"):
            stream().load_state_dict({**good, "length": "50"})
        with pytest.raises(ValueError, match="items in state should be what"):
            stream().load_state_dict({**good, "items": [1, 2]})

    def test_a_refused_state_changes_nothing(self) -> None:
        running, expected = stream(), list(islice(stream(), 20))
        assert list(islice(running, 10)) == expected[:10]
        with pytest.raises(ValueError, match="seed"):
            running.load_state_dict(stream(seed=1).state_dict())
        assert list(islice(running, 10)) == expected[10:]


class TestFailingSource:
    """The error is raised, the state before it is valid, and no item is lost."""

    @pytest.mark.parametrize("repeat", [True, False])
    @pytest.mark.parametrize("fails_at", [0, 3, 19, 20, 22, 33, 49])
    def test_seekable_source_is_tried_again(self, fails_at: int, repeat: bool) -> None:
        expected = list(islice(stream(repeat=repeat), 30))
        failures = 3

        def source(start: int) -> Iterator[int]:
            nonlocal failures
            for item in range(start, 50):
                if item == fails_at and failures:
                    failures -= 1
                    raise OSError("the disk")
                yield item

        running, found = stream(source, repeat=repeat), []
        while len(found) < len(expected):
            state = running.state_dict()
            try:
                found.append(next(running))
            except OSError:
                assert running.state_dict() == state
                resumed = stream(repeat=repeat)
                resumed.load_state_dict(state)
                assert list(islice(resumed, 30 - len(found))) == expected[len(found) :]
        assert failures == 0
        assert found == expected

    @pytest.mark.parametrize("live", [False, True])
    @pytest.mark.parametrize("fails_at", [0, 3, 19, 20, 22, 33, 49])
    def test_source_that_cannot_seek(self, fails_at: int, live: bool) -> None:
        def source() -> Iterator[int]:
            for item in range(100):
                if item == fails_at:
                    raise OSError("the disk")
                yield item

        expected = list(stream(range(100), repeat=False))
        options: dict[str, Any] = {"repeat": False, "store_items": True, "source_continues": live}
        running, found = stream(source(), **options), []
        with pytest.raises(OSError, match="the disk"):
            found.extend(running)  # the batches before the error are kept
        with pytest.raises(RuntimeError, match=r"source raised OSError\('the disk'\).*load a state"):
            next(running)
        resumed = stream(iter(range(fails_at if live else 0, 100)), **options)
        resumed.load_state_dict(running.state_dict())
        assert found + list(resumed) == expected

    def test_failure_while_the_pool_is_read_again(self) -> None:
        failures = 2

        def source(start: int) -> Iterator[int]:
            nonlocal failures
            for item in range(start, 50):
                if item == 30 and failures:
                    failures -= 1
                    raise OSError("the disk")
                yield item

        expected = list(islice(stream(), 40))
        resumed = stream(source)
        resumed.seek(20)
        for _ in range(2):
            with pytest.raises(OSError, match="the disk"):
                next(resumed)
            assert resumed.step == 20
        assert list(islice(resumed, 20)) == expected[20:]


class TestTextLines:
    @pytest.mark.parametrize("every", [1, 2, 7, 1000])
    @pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "\n\n", "é\r\nü\nx\x0cy\x85z\n" * 20])
    def test_begins_at_any_line(self, tmp_path: Path, text: str, every: int) -> None:
        path = tmp_path / "lines.txt"
        path.write_bytes(text.encode())
        expected = [line.removesuffix("\r") for line in text.split("\n")]
        if expected[-1] == "":
            expected.pop()
        lines = TextLines(path, every=every)
        assert lines.length == len(expected)
        for start in range(len(expected) + 2):
            assert list(lines(start)) == expected[start:]

    def test_bad_input(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            TextLines(tmp_path / "none.txt")
        with pytest.raises(TypeError, match="every should be an int"):
            TextLines(tmp_path, every=True)
        with pytest.raises(TypeError, match=r"path should name one text file, but got \['a'\] of type list"):
            TextLines(["a"])  # type: ignore[arg-type]


SIZES = [3, 0, 10, 1, 7, 4, 9]


def shards(sizes: list[int], counted: bool = True) -> Shards[int, tuple[int, int]]:
    def open_shard(number: int) -> Iterator[tuple[int, int]]:
        return ((number, place) for place in range(sizes[number]))

    return Shards(range(len(sizes)), open_shard, lengths=sizes if counted else None)


class TestShards:
    @pytest.mark.parametrize("counted", [True, False])
    def test_begins_at_any_item(self, counted: bool) -> None:
        source = shards(SIZES, counted)
        everything = list(source(0))
        assert len(everything) == sum(SIZES)
        for start in range(len(everything) + 2):
            assert list(source(start)) == everything[start:]
        assert source.length == (sum(SIZES) if counted else None)

    def test_shards_before_the_start_are_not_opened(self) -> None:
        opened = []

        def open_shard(name: str) -> str:
            opened.append(name)
            return name

        source = Shards(["abc", "de", "fgh"], open_shard, lengths=[3, 2, 3])
        assert "".join(source(4)) == "efgh"
        assert opened == ["de", "fgh"]

    @pytest.mark.parametrize(("stated", "found"), [(2, "more than 2"), (4, "3")])
    def test_wrong_lengths(self, stated: int, found: str) -> None:
        with pytest.raises(
            ValueError, match=f"lengths should say how many items shard 'abc' has, {found}, but got {stated}"
        ):
            list(Shards(["abc"], list, lengths=[stated])(0))

    def test_bad_input(self) -> None:
        bad: Any
        for bad in ("abc", 3, None):
            with pytest.raises(TypeError, match="shards should be a list"):
                Shards(bad, list)
        with pytest.raises(TypeError, match="open_shard should be a callable"):
            Shards(["a"], 3)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="one number for each of the 2 shards, but got 1"):
            Shards(["a", "b"], list, lengths=[1])
        with pytest.raises(TypeError, match="each length should be an int"):
            Shards(["a"], list, lengths=[True])

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
    def test_division_has_no_overlap_and_leaves_nothing_out(self, count: int) -> None:
        source = shards(SIZES)
        parts = [list(share_of_source(source, index, count)(0)) for index in range(count)]
        assert sorted(chain.from_iterable(parts)) == sorted(source(0))
        for index, part in enumerate(parts):
            assert {number % count for number, _ in part} <= {index}
        assert shares_of_length(source, count) == [len(part) for part in parts]

    @pytest.mark.parametrize("make", [range, lambda n: list(range(n)), lambda n: lambda s: range(s, n)])
    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_other_sources_are_divided_item_by_item(self, make: Callable[[int], Any], count: int) -> None:
        for index in range(count):
            part = share_of_source(make(23), index, count)
            running = PooledStream(part, batch_size=1, pool_size=1, repeat=False)
            assert list(chain.from_iterable(running)) == list(range(index, 23, count))
            sought = PooledStream(part, batch_size=1, pool_size=1, repeat=False)
            sought.seek(2)
            assert list(chain.from_iterable(sought)) == list(range(index, 23, count))[2:]
        known = shares_of_length(make(23), count)
        assert known is None or known == [len(range(index, 23, count)) for index in range(count)]

    @given(
        st.integers(1, 4),
        st.integers(1, 4),
        st.integers(1, 5),
        st.lists(st.integers(0, 30), min_size=16, max_size=16),
    )
    def test_ranks_end_together(self, ranks: int, workers: int, batch_size: int, sizes: list[int]) -> None:
        lengths = sizes[: ranks * workers]
        have = [-(-length // batch_size) for length in lengths]
        given = batches_together(lengths, ranks, batch_size)
        ends = {sum(given[rank::ranks]) for rank in range(ranks)}
        assert ends == {min(sum(have[rank::ranks]) for rank in range(ranks))}
        assert all(0 <= mine <= most for mine, most in zip(given, have, strict=True))
        for rank in range(ranks):
            # A worker loses batches only if no other worker has two more than it.
            cut = [mine for mine, most in zip(given[rank::ranks], have[rank::ranks], strict=True) if mine < most]
            assert not cut or max(given[rank::ranks]) <= min(cut) + 1
