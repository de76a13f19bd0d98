"""The pooled stream as an IterableDataset: workers, ranks, epochs, and exact resume in torchdata's loader."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, default_collate
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish.stream import PooledStream, Shards
from replenish.torch import PooledIterableDataset

SIZES = [13, 4, 20, 9, 1, 16, 8, 11]  # of the shards: 82 items


def open_shard(number: int) -> Iterator[int]:
    return iter(range(100 * number, 100 * number + SIZES[number]))


class Forward:
    """Can be read from its beginning alone."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(90))


def count_from(start: int) -> range:
    return range(start, 90)


def shards(counted: bool = True) -> Shards[int, int]:
    return Shards(range(len(SIZES)), open_shard, lengths=SIZES if counted else None)


SOURCES: dict[str, Any] = {"shards": shards, "range": lambda: range(90), "callable": lambda: count_from}
OPTIONS: dict[str, Any] = {"batch_size": 4, "pool_size": 10, "seed": 3}


@pytest.fixture(params=list(SOURCES))
def source(request: pytest.FixtureRequest) -> Any:
    return SOURCES[request.param]()


def items(source: Any) -> list[int]:
    return sorted(source(0) if callable(source) else source)


def loader(dataset: PooledIterableDataset[int], num_workers: int = 0, **options: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=None, num_workers=num_workers, **options)


class TestDataLoader:
    def test_without_workers_it_is_the_stream(self, source: Any) -> None:
        for repeat in (True, False):
            dataset = PooledIterableDataset(source, repeat=repeat, **OPTIONS)
            expected = list(islice(PooledStream(source, repeat=repeat, **OPTIONS), 60))
            assert list(islice(loader(dataset), 60)) == expected

    @pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
    @pytest.mark.parametrize("num_workers", [0, 1, 2, 3])
    def test_every_item_once(self, source: Any, num_workers: int) -> None:
        dataset = PooledIterableDataset(source, repeat=False, **OPTIONS)
        found = list(loader(dataset, num_workers))
        assert sorted(chain.from_iterable(found)) == items(source)
        dataset.set_epoch(0)
        assert found == list(loader(dataset, num_workers))  # a pure function of the epoch
        dataset.set_epoch(1)
        other = list(loader(dataset, num_workers))
        assert other != found
        assert sorted(chain.from_iterable(other)) == items(source)

    @pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
    def test_workers_without_shards_give_nothing(self) -> None:
        dataset = PooledIterableDataset(Shards([0, 2], open_shard), repeat=False, **OPTIONS)
        assert sorted(chain.from_iterable(loader(dataset, 3))) == [*range(13), *range(200, 220)]

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_epochs_go_on_from_each_other(self, source: Any, num_workers: int) -> None:
        endless = PooledIterableDataset(source, **OPTIONS)
        expected = list(islice(loader(endless, num_workers), 40))
        dataset = PooledIterableDataset(source, steps_per_epoch=10, **OPTIONS)
        assert len(loader(dataset, num_workers)) == 10
        found = []
        for epoch in range(4):
            dataset.set_epoch(epoch)
            found += list(loader(dataset, num_workers))
        assert found == expected
        dataset.set_epoch(2)
        assert list(loader(dataset, num_workers)) == expected[20:30]

    def test_persistent_workers_hear_of_the_epoch(self) -> None:
        dataset = PooledIterableDataset(shards(), steps_per_epoch=7, **OPTIONS)
        batches = loader(dataset, 2, persistent_workers=True)
        seen = []
        for epoch in (0, 1, 0):
            dataset.set_epoch(epoch)
            seen.append(list(batches))
        assert seen[0] == seen[2] != seen[1]
        dataset.set_epoch(1)
        assert list(loader(dataset, 2)) == seen[1]

    def test_collate(self) -> None:
        dataset = PooledIterableDataset(range(90), repeat=False, **OPTIONS)
        batch = next(iter(loader(dataset, collate_fn=default_collate)))
        assert isinstance(batch, torch.Tensor)
        assert batch.shape == (4,)

    def test_a_source_that_cannot_seek(self) -> None:
        for num_workers in (0, 2):
            dataset = PooledIterableDataset(Forward(), repeat=False, **OPTIONS)
            assert sorted(chain.from_iterable(loader(dataset, num_workers))) == list(range(90))

    def test_an_error_of_the_source_passes_through(self) -> None:
        def source(start: int) -> Iterator[int]:
            yield from range(start, 30)
            raise OSError("the disk")

        for num_workers in (0, 2):
            running: Any = iter(loader(PooledIterableDataset(source, repeat=False, **OPTIONS), num_workers))
            with pytest.raises(OSError, match="the disk"):
                list(running)
            if num_workers:
                running._shutdown_workers()  # left to the garbage collector, it waits 5 seconds for each

    def test_passes_at_the_same_time_do_not_disturb_each_other(self) -> None:
        dataset = PooledIterableDataset(shards(), steps_per_epoch=10, **OPTIONS)
        expected = list(dataset)
        dataset.set_epoch(0)
        together = list(zip(dataset, dataset, strict=True))
        assert [one for one, _ in together] == [two for _, two in together] == expected

    def test_an_ended_pass_gives_no_state_of_a_later_one(self) -> None:
        dataset = PooledIterableDataset(shards(), steps_per_epoch=10, **OPTIONS)
        first: Any = iter(dataset)
        list(first)
        assert first.state_dict()["pass"]["step"] == 10
        dataset.set_epoch(1)
        next(iter(dataset))
        with pytest.raises(RuntimeError, match="this pass has ended"):
            first.state_dict()

    def test_an_iterator_is_not_begun_twice(self) -> None:
        """A second pass would lose what the first one's pool held."""
        for repeat in (True, False):
            dataset = PooledIterableDataset(iter(range(1000)), repeat=repeat, **OPTIONS)
            next(iter(dataset))
            with pytest.raises(ValueError, match="source should be one that can begin again .* earlier pass"):
                next(iter(dataset))

    def test_an_iterator_goes_on_from_pass_to_pass(self) -> None:
        dataset = PooledIterableDataset(iter(range(1000)), steps_per_epoch=10, **OPTIONS)
        found = []
        for epoch in range(3):
            dataset.set_epoch(epoch)
            found += list(dataset)
        assert found == list(islice(PooledStream(range(1000), **OPTIONS), 30))

    def test_pickle(self) -> None:
        dataset = PooledIterableDataset(shards(), steps_per_epoch=7, **OPTIONS)
        expected = list(dataset)
        dataset.set_epoch(0)
        assert list(pickle.loads(pickle.dumps(dataset))) == expected


class TestRanks:
    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("ranks", [2, 3])
    def test_end_together_without_overlap(self, ranks: int, num_workers: int) -> None:
        found = [
            list(
                loader(
                    PooledIterableDataset(shards(), repeat=False, num_replicas=ranks, rank=rank, **OPTIONS), num_workers
                )
            )
            for rank in range(ranks)
        ]
        assert len({len(batches) for batches in found}) == 1
        assert len(found[0]) > 0
        each = [list(chain.from_iterable(batches)) for batches in found]
        together = list(chain.from_iterable(each))
        assert len(together) == len(set(together))
        for rank, own in enumerate(each):
            assert {item // 100 % ranks for item in own} == {rank}

    def test_the_shortest_rank_gives_all(self) -> None:
        lengths = [sum(SIZES[rank::2]) for rank in range(2)]
        shortest = lengths.index(min(lengths))
        dataset = PooledIterableDataset(shards(), repeat=False, num_replicas=2, rank=shortest, **OPTIONS)
        assert sorted(chain.from_iterable(dataset)) == items(shards().share(shortest, 2))

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_repeating_ranks_have_equal_passes(self, num_workers: int) -> None:
        for rank in range(3):
            dataset = PooledIterableDataset(shards(), steps_per_epoch=9, num_replicas=3, rank=rank, **OPTIONS)
            found = list(loader(dataset, num_workers))
            assert len(found) == 9
            assert {item // 100 % 3 for item in chain.from_iterable(found)} == {rank}

    def test_ranks_are_those_of_torch_distributed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
        found = PooledIterableDataset(shards(), repeat=False, **OPTIONS)
        given = PooledIterableDataset(shards(), repeat=False, num_replicas=3, rank=2, **OPTIONS)
        assert (found.num_replicas, found.rank) == (3, 2)
        assert list(found) == list(given)

    def test_the_assignment(self) -> None:
        """Shard i is read by rank i mod R, and there by worker (i // R) mod W."""
        dataset = PooledIterableDataset(shards(), repeat=False, num_replicas=2, rank=1, batch_size=1, pool_size=1)
        found = list(loader(dataset, 2))
        by_worker = [{batch[0] // 100 for batch in found[worker:10:2]} for worker in range(2)]
        assert by_worker[0] <= {1, 5}
        assert by_worker[1] <= {3, 7}

    def test_draws_differ_between_consumers(self) -> None:
        one, two = (
            [
                [item // 2 for item in batch]
                for batch in PooledIterableDataset(range(200), repeat=False, num_replicas=2, rank=rank, **OPTIONS)
            ]
            for rank in range(2)
        )
        assert one != two


def resumable(num_workers: int, source: Any, every: int = 1, **options: Any) -> StatefulDataLoader:
    dataset = PooledIterableDataset(source, **{**OPTIONS, **options})
    return StatefulDataLoader(dataset, batch_size=None, num_workers=num_workers, snapshot_every_n_steps=every)


class TestStatefulDataLoader:
    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("trained", [0, 7, 20])
    @pytest.mark.parametrize(
        "options", [{"repeat": False}, {"steps_per_epoch": 20}, {"steps_per_epoch": 20, "store_items": True}], ids=str
    )
    def test_resume(self, source: Any, num_workers: int, trained: int, options: dict[str, Any]) -> None:
        expected = list(resumable(num_workers, source, **options))
        first = resumable(num_workers, source, **options)
        seen = list(islice(iter(first), trained))
        state = pickle.loads(pickle.dumps(first.state_dict()))
        resumed = resumable(num_workers, source, **options)
        resumed.load_state_dict(state)
        assert seen + list(resumed) == expected

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_resume_of_an_endless_pass(self, num_workers: int) -> None:
        expected = list(islice(resumable(num_workers, shards()), 60))
        first = resumable(num_workers, shards(), every=4)
        seen = list(islice(first, 30))
        resumed = resumable(num_workers, shards(), every=4)
        resumed.load_state_dict(first.state_dict())
        assert seen + list(islice(resumed, 30)) == expected

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_resume_of_a_source_that_cannot_seek(self, num_workers: int) -> None:
        options: dict[str, Any] = {"repeat": False, "store_items": True}
        expected = list(resumable(num_workers, Forward(), **options))
        first = resumable(num_workers, Forward(), **options)
        seen = list(islice(first, 9))
        resumed = resumable(num_workers, Forward(), **options)
        resumed.load_state_dict(first.state_dict())
        assert seen + list(resumed) == expected

    def test_resume_of_a_live_source(self) -> None:
        live = iter(range(1000))
        options: dict[str, Any] = {"store_items": True, "source_continues": True}
        first = resumable(0, live, **options)
        seen = list(islice(first, 9))
        resumed = resumable(0, live, **options)
        resumed.load_state_dict(first.state_dict())
        seen += list(islice(resumed, 9))
        assert seen == list(islice(PooledStream(range(1000), **OPTIONS), 18))

    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("trained", [0, 4])
    @pytest.mark.parametrize(
        "options", [{"repeat": False}, {"steps_per_epoch": 10}, {"steps_per_epoch": 10, "store_items": True}], ids=str
    )
    def test_resume_in_a_later_epoch(self, num_workers: int, options: dict[str, Any], trained: int) -> None:
        def epoch(batches: StatefulDataLoader, number: int) -> StatefulDataLoader:
            batches.dataset.set_epoch(number)
            return batches

        plain = resumable(num_workers, shards(), **options)
        expected = [list(epoch(plain, number)) for number in range(4)]
        first = resumable(num_workers, shards(), **options)
        assert list(epoch(first, 0)) == expected[0]
        assert list(epoch(first, 1)) == expected[1]
        seen = list(islice(iter(epoch(first, 2)), trained))
        resumed = resumable(num_workers, shards(), **options)
        resumed.load_state_dict(first.state_dict())
        assert seen + list(epoch(resumed, 2)) == expected[2]
        assert list(epoch(resumed, 3)) == expected[3]

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_resume_after_a_finished_epoch(self, num_workers: int) -> None:
        first = resumable(num_workers, shards(), steps_per_epoch=10)
        list(first)
        resumed = resumable(num_workers, shards(), steps_per_epoch=10)
        resumed.load_state_dict(first.state_dict())
        resumed.dataset.set_epoch(1)
        first.dataset.set_epoch(1)
        assert list(resumed) == list(first)

    def test_state_of_a_seekable_source_is_plain(self) -> None:
        first = resumable(0, shards(), repeat=False)
        list(islice(first, 5))
        state = json.dumps(first.state_dict()["fetcher_state"])
        assert len(state) < 500

    def test_state_of_another_division_is_refused(self) -> None:
        first = iter(PooledIterableDataset(shards(), num_replicas=2, rank=0, **OPTIONS))
        next(first)
        other: Any = iter(PooledIterableDataset(shards(), num_replicas=3, rank=1, **OPTIONS))
        state = first.state_dict()  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="num_replicas is 2 in the state but 3 here, rank is 0 .* but 1 here"):
            other.load_state_dict(state)
        with pytest.raises(ValueError, match="state should be what state_dict"):
            other.load_state_dict({"step": 3})

    def test_a_refused_state_changes_nothing(self) -> None:
        dataset = PooledIterableDataset(range(50), steps_per_epoch=20, **OPTIONS)
        running = iter(dataset)
        first = [next(running) for _ in range(3)]
        state = running.state_dict()
        with pytest.raises(ValueError, match="seed is 9 in the state but 3 here"):
            running.load_state_dict({**state, "epoch": 4, "pass": {**state["pass"], "seed": 9}})
        assert first + list(running) == list(PooledIterableDataset(range(50), steps_per_epoch=20, **OPTIONS))

    def test_what_cannot_be_resumed_says_so(self) -> None:
        running = resumable(0, Forward())
        with pytest.raises(ValueError, match="store_items should be True to save the state"):
            running.state_dict()


class TestBadInput:
    def test_arguments_of_the_stream(self) -> None:
        for name, bad in [("batch_size", 0), ("pool_size", 3), ("seed", -1)]:
            with pytest.raises(ValueError, match=f"{name} should be"):
                PooledIterableDataset(range(9), **{**OPTIONS, name: bad})
        with pytest.raises(TypeError, match="repeat should be True or False"):
            PooledIterableDataset(range(9), repeat=1, **OPTIONS)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="source should give at least one item"):
            PooledIterableDataset([], **OPTIONS)

    def test_steps_and_epochs_of_wrong_type(self) -> None:
        with pytest.raises(TypeError, match="steps_per_epoch should be an int"):
            PooledIterableDataset(range(9), steps_per_epoch=1.0, **OPTIONS)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="epoch should be an int"):
            PooledIterableDataset(range(9), repeat=False, **OPTIONS).set_epoch(1.0)  # type: ignore[arg-type]

    def test_steps_per_epoch_with_an_end(self) -> None:
        with pytest.raises(ValueError, match="steps_per_epoch should be None with repeat=False.*got 3"):
            PooledIterableDataset(range(9), repeat=False, steps_per_epoch=3, **OPTIONS)

    def test_epoch_of_a_pass_without_end(self) -> None:
        dataset = PooledIterableDataset(range(9), **OPTIONS)
        dataset.set_epoch(0)
        with pytest.raises(ValueError, match="steps_per_epoch should be given for set_epoch"):
            dataset.set_epoch(1)
        with pytest.raises(TypeError, match="has a length only with steps_per_epoch"):
            len(dataset)

    @pytest.mark.parametrize(
        "source", [count_from, shards(counted=False), Forward()], ids=["callable", "shards", "forward"]
    )
    def test_ranks_that_could_not_end_together(self, source: Any) -> None:
        with pytest.raises(
            ValueError, match="source should have a known length with repeat=False and several processes"
        ):
            PooledIterableDataset(source, repeat=False, num_replicas=2, rank=0, **OPTIONS)

    def test_ranks_without_anything(self) -> None:
        dataset = PooledIterableDataset(
            Shards([0], open_shard, lengths=[13]), repeat=False, num_replicas=2, rank=0, **OPTIONS
        )
        with pytest.raises(ValueError, match="source should have items for each of the 2 processes"):
            list(dataset)
        repeating = PooledIterableDataset(Shards([0], open_shard), num_replicas=2, rank=1, **OPTIONS)
        with pytest.raises(ValueError, match="at least one shard for each of the 2 workers"):
            next(iter(repeating))

    def test_rank_is_missing(self) -> None:
        with pytest.raises(ValueError, match="rank should be given with num_replicas=2"):
            PooledIterableDataset(range(9), num_replicas=2, **OPTIONS)
        with pytest.raises(ValueError, match="rank should be less than num_replicas"):
            PooledIterableDataset(range(9), num_replicas=2, rank=2, **OPTIONS)
