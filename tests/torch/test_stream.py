"""The pooled stream as an IterableDataset: division, positions by the contract, random histories."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import random
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader
from ways import exact, refused

from replenish.stream import PooledStream, Shards
from replenish.torch import PooledIterableDataset

SIZES = [13, 4, 20, 9, 1, 16, 8, 11]  # of the shards, 82 items in all
OPTIONS: dict[str, Any] = {"batch_size": 4, "pool_size": 10, "seed": 3}


class OfUnknownLength:
    """A seekable source without a length."""

    def __init__(self, length: int = 50) -> None:
        self._items = length

    def __call__(self, start: int) -> Iterator[int]:
        return iter(range(start, self._items))


class Forward:
    """A source that can start again, but only from its beginning."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(50))


def open_shard(number: int) -> Iterator[int]:
    return iter(range(100 * number, 100 * number + SIZES[number]))


def shards(counted: bool = True) -> Shards[int, int]:
    return Shards(range(len(SIZES)), open_shard, lengths=SIZES if counted else None)


SOURCES: dict[str, Callable[[], Any]] = {
    "shards": shards,
    "range": lambda: range(90),
    "callable": lambda: OfUnknownLength(90),
}


def items(source: Any) -> list[int]:
    return sorted(source(0) if callable(source) else source)


def dataset(source: Any, workers: int = 0, **options: Any) -> PooledIterableDataset[int]:
    return PooledIterableDataset(source, num_workers=workers, **{**OPTIONS, **options})


def loader(data: Any, workers: int = 0, **options: Any) -> DataLoader[Any]:
    return DataLoader(data, batch_size=None, num_workers=workers, **options)


def first_error(batches: DataLoader[Any]) -> None:
    """Raise the error of a loader and end its workers. The garbage collector would wait 5 seconds for each."""
    running: Any = iter(batches)
    try:
        list(running)
    finally:
        if batches.num_workers:
            running._shutdown_workers()


def passes(source: Any, workers: int, epochs: int, **options: Any) -> list[list[list[int]]]:
    """Return the batches of whole epochs, each from a new dataset."""
    found = []
    for epoch in range(epochs):
        data = dataset(source, workers, **options)
        data.set_epoch(epoch)
        found.append(list(loader(data, workers)))
    return found


class TestBatches:
    @pytest.mark.parametrize("name", SOURCES)
    def test_without_workers_equal_the_stream(self, name: str) -> None:
        for repeat in (True, False):
            data = dataset(SOURCES[name](), repeat=repeat)
            expected = list(islice(PooledStream(SOURCES[name](), repeat=repeat, **OPTIONS), 60))
            assert list(islice(loader(data), 60)) == expected

    @pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
    @pytest.mark.parametrize("workers", [0, 1, 3])
    @pytest.mark.parametrize("name", SOURCES)
    def test_every_item_once(self, name: str, workers: int) -> None:
        source = SOURCES[name]()
        first, second = passes(source, workers, 2, repeat=False)
        assert first != second
        for found in (first, second):
            assert sorted(chain.from_iterable(found)) == items(source)

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("name", SOURCES)
    def test_epochs_continue_the_endless_stream(self, name: str, workers: int) -> None:
        endless = list(islice(loader(dataset(SOURCES[name](), workers), workers), 40))
        data = dataset(SOURCES[name](), workers, steps_per_epoch=10)
        assert len(loader(data, workers)) == 10
        found = []
        for epoch in range(4):
            data.set_epoch(epoch)
            found += list(loader(data, workers))
        assert found == endless

    def test_an_error_of_the_source_is_raised(self) -> None:
        def source(start: int) -> Iterator[int]:
            yield from range(start, 30)
            raise OSError("the disk")

        for workers in (0, 2):
            with pytest.raises(OSError, match="the disk"):
                first_error(loader(dataset(source, workers, repeat=False), workers))

    def test_a_later_pass_continues_the_pool_of_an_earlier_one(self) -> None:
        data = dataset(shards(), steps_per_epoch=10)
        first: Any = iter(data)
        list(first)
        assert first.state_dict()["pass"]["step"] == 10
        next(iter(data))
        assert list(first) == []
        with pytest.raises(RuntimeError, match="this pass has ended and a later one continues its pool"):
            first.state_dict()
        data.set_epoch(2)
        second: Any = iter(data)
        next(second)
        data.set_epoch(2)
        next(iter(data))
        with pytest.raises(RuntimeError, match="while a pass of epoch 2 was under way"):
            next(second)

    def test_an_iterator_is_read_only_once(self) -> None:
        """A second pass would lose the items in the first one's pool, unless it continues that pool."""
        for repeat in (True, False):
            data = PooledIterableDataset(iter(range(1000)), repeat=repeat, **OPTIONS)
            next(iter(data))
            data.set_epoch(0)
            if not repeat:
                with pytest.raises(ValueError, match="source should be one that can begin again .* earlier pass"):
                    next(iter(data))
        data = dataset(iter(range(1000)), steps_per_epoch=10)
        found = [batch for _ in range(3) for batch in data]
        assert found == list(islice(PooledStream(range(1000), **OPTIONS), 30))


class TestRanks:
    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("ranks", [2, 3])
    def test_end_together_without_overlap(self, ranks: int, workers: int) -> None:
        """Rank i mod R reads shard i. The rank with the fewest batches yields all its items."""
        found = []
        for rank in range(ranks):
            data = dataset(shards(), workers, repeat=False, num_replicas=ranks, rank=rank)
            found.append(list(loader(data, workers)))
            assert len(found[-1]) == len(data) > 0
        assert len({len(batches) for batches in found}) == 1
        each = [list(chain.from_iterable(batches)) for batches in found]
        together = list(chain.from_iterable(each))
        assert len(together) == len(set(together))
        for rank, own in enumerate(each):
            assert {item // 100 % ranks for item in own} == {rank}
        lengths = [sum(SIZES[rank::ranks]) for rank in range(ranks)]
        shortest = lengths.index(min(lengths))
        assert workers or len(each[shortest]) == min(lengths)

    def test_come_from_torch_distributed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
        found = dataset(shards(), repeat=False)
        assert (found.num_replicas, found.rank) == (3, 2)
        assert list(found) == list(dataset(shards(), repeat=False, num_replicas=3, rank=2))

    @pytest.mark.parametrize("source", [OfUnknownLength(), shards(counted=False)], ids=["callable", "shards"])
    def test_are_refused_if_they_could_not_end_together(self, source: Any) -> None:
        with pytest.raises(ValueError, match="source should have a known length with repeat=False and several process"):
            dataset(source, repeat=False, num_replicas=2, rank=0)

    def test_without_items_are_refused(self) -> None:
        with pytest.raises(ValueError, match="source should have items for each of the 2 processes"):
            dataset(Shards([0], open_shard, lengths=[13]), repeat=False, num_replicas=2, rank=0)
        with pytest.raises(ValueError, match="at least one shard for each of the 2 workers"):
            next(iter(dataset(Shards([0], open_shard), num_replicas=2, rank=1)))
        with pytest.raises(ValueError, match="rank should be given with num_replicas=2"):
            dataset(range(9), num_replicas=2)


class TestPositions:
    """The contract of the samplers, as in docs/howto/resume.md."""

    def test_a_pass_left_early_leaves_no_position(self) -> None:
        data = dataset(range(90), steps_per_epoch=10)
        whole = passes(range(90), 0, 2, steps_per_epoch=10)
        next(iter(loader(data)))
        with pytest.raises(RuntimeError, match="the position is unknown"):
            next(iter(loader(data)))
        data.set_epoch(0)
        assert list(loader(data)) == whole[0]  # after a whole pass comes the next epoch
        assert list(loader(data)) == whole[1]
        assert data.epoch == 2

    def test_workers_need_every_position(self) -> None:
        data = dataset(range(90), 2, steps_per_epoch=10)
        list(loader(data, 2))
        with pytest.raises(RuntimeError, match="the position is unknown"):
            first_error(loader(data, 2))
        data.set_epoch(0)
        batches = loader(data, 2, persistent_workers=True)
        list(batches)
        data.set_epoch(1)
        with pytest.raises(ValueError, match="persistent_workers should be False"):
            first_error(batches)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_position_set_within_a_pass_ends_it(self, workers: int) -> None:
        """A loop that returns to a checkpoint would train on the wrong batches."""
        for move in (lambda data: data.seek(3), lambda data: data.set_epoch(1)):
            data = dataset(range(900), workers, steps_per_epoch=100)
            batches: Any = iter(loader(data, workers))
            list(islice(batches, 6))
            move(data)
            with pytest.raises(
                RuntimeError, match="the position was set to epoch .* while a pass of epoch 0 was under"
            ):
                list(batches)
            if workers:
                batches._shutdown_workers()

    def test_set_epoch_keeps_a_restored_step_of_its_epoch(self) -> None:
        data = dataset(range(90), steps_per_epoch=10)
        data.seek(13)
        data.set_epoch(1)
        assert data.state_dict()["step"] == 13
        with pytest.raises(ValueError, match="epoch should be at least 1, that of step 13, .* but got"):
            data.set_epoch(0)
        data.set_epoch(2)
        assert data.state_dict()["step"] == 20

    def test_a_step_outside_those_drawn_is_refused(self) -> None:
        data = dataset(range(90), steps_per_epoch=10)
        data.set_epoch(1)
        list(islice(loader(data), 3))
        for step in (9, 14):
            with pytest.raises(ValueError, match="step should be from 10, .* to 13, the steps drawn, but got"):
                data.state_dict(step)
        with pytest.raises(ValueError, match="step should be the number of steps trained.*but got None"):
            data.state_dict()
        assert data.state_dict(12)["step"] == 12
        for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
            with pytest.raises(RuntimeError, match="the position is unknown"):
                next(iter(other))
            other.seek(12)
            assert next(iter(other)) == passes(range(90), 0, 2, steps_per_epoch=10)[1][2]

    def test_a_state_of_another_stream_is_refused(self) -> None:
        data = dataset(range(90), steps_per_epoch=10)
        state = data.state_dict(7)
        for options, message in (
            ({"workers": 2}, "num_workers is 0 in the state but 2"),
            ({"num_replicas": 2, "rank": 1}, "num_replicas is 1 in the state but 2"),
            ({"seed": 4}, "seed is 3 in the state but 4"),
            ({"steps_per_epoch": 9}, "steps_per_epoch is 10 in the state but 9"),
        ):
            with pytest.raises(ValueError, match=message):
                dataset(range(90), **{"steps_per_epoch": 10, **options}).load_state_dict(state)
        data.load_state_dict({"epoch": 3})  # as versions before 1.0 saved it
        assert data.state_dict()["step"] == 30

    def test_a_source_without_a_length_or_a_seek(self) -> None:
        data = dataset(OfUnknownLength(), repeat=False)
        with pytest.raises(ValueError, match="source should have a known length to count steps"):
            data.seek(3)
        with pytest.raises(TypeError, match="has a length only with steps_per_epoch"):
            len(data)
        with pytest.raises(ValueError, match="source should be able to begin at a position for step 3"):
            dataset(Forward(), steps_per_epoch=5).state_dict(3)
        with pytest.raises(ValueError, match="steps_per_epoch should be given for set_epoch"):
            dataset(range(9)).set_epoch(1)
        with pytest.raises(ValueError, match="steps_per_epoch should be None with repeat=False"):
            dataset(range(9), repeat=False, steps_per_epoch=3)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_num_workers_must_match_the_loader(self, workers: int) -> None:
        with pytest.raises(
            ValueError, match=f"num_workers .* should be that of the DataLoader.* but got {2 - workers}"
        ):
            first_error(loader(dataset(range(90), 2 - workers), workers))


class History:
    """A training with random epochs, looks, early exits, saves and kills. `expected` has its batches by the contract.

    It saves `dataset.state_dict(step)` with the steps trained, or the state of torchdata's loader.
    """

    def __init__(self, seed: int, workers: int) -> None:
        self.draw = draw = random.Random(seed)
        self.workers = workers
        self.torchdata = draw.random() < 0.4
        names = ["shards", "range", "callable"] if self.torchdata else ["shards", "range"]
        self.name = draw.choice(names)
        batch_size, pool_size = draw.choice([(4, 4), (4, 10), (3, 60), (1, 7)])
        self.options = {"batch_size": batch_size, "pool_size": pool_size, "seed": draw.randint(0, 9)}
        if draw.random() < 0.5:
            self.options |= {"steps_per_epoch": draw.choice([2, 5, 8])}
        else:
            self.options |= {"repeat": False}
        if self.torchdata and draw.random() < 0.3:
            self.options |= {"store_items": True}
        self.expected = passes(SOURCES[self.name](), workers, 3, **self.options)
        self.snapshots = draw.choice([1, 1, 3, 100])
        self.start()

    def start(self) -> None:
        self.data = dataset(SOURCES[self.name](), self.workers, **self.options)
        workers = {"num_workers": self.workers}
        if self.torchdata:
            every = {"snapshot_every_n_steps": self.snapshots}
            self.loader: Any = StatefulDataLoader(self.data.stateful(), batch_size=None, **workers, **every)
        else:
            self.loader = DataLoader(self.data, batch_size=None, **workers)

    def save(self, epoch: int, done: int) -> Any:
        state = self.loader.state_dict() if self.torchdata else self.data.state_dict(self.step(epoch) + done)
        return epoch, done, pickle.dumps(state)

    def step(self, epoch: int) -> int:
        return sum(map(len, self.expected[:epoch]))

    def check(self, where: object) -> None:
        draw, saved, epoch, done, kills = self.draw, None, 0, 0, 0
        while epoch < 3:
            if draw.random() < 0.2 and not (self.torchdata and done):  # a look at the data
                self.data.set_epoch(epoch)
                next(iter(self.loader))
                if self.data.steps_per_epoch is not None:
                    self.data.seek(self.step(epoch) + done)
            self.data.set_epoch(epoch)
            limit = draw.choice([None, None, 1, 3])
            seen: list[Any] = []
            killed = False
            for batch in self.loader:
                seen.append(batch)
                if draw.random() < 0.4:
                    saved = self.save(epoch, done + len(seen))
                killed = draw.random() < 0.1 and kills < 4
                if killed or len(seen) == limit:
                    break
            rest = self.expected[epoch][done:]
            assert seen == (rest[: len(seen)] if killed else rest[:limit]), where
            epoch, done = epoch + 1, 0
            if killed:
                kills += 1
                self.start()
                epoch, done = 0, 0
                if saved is not None:
                    epoch, done, state = saved
                    (self.loader if self.torchdata else self.data).load_state_dict(pickle.loads(state))
                    if done == len(self.expected[epoch]) and not self.torchdata:
                        epoch, done = epoch + 1, 0


def test_histories() -> None:
    for seed in range(100):
        History(seed, workers=0).check(seed)
    exact("streams", "any loader, `dataset.state_dict(step)`", "torchdata, the loader's own state", seen=[1], whole=[1])


@pytest.mark.parametrize("seed", range(6))
def test_histories_with_workers(seed: int) -> None:
    History(1000 + seed, workers=2).check(seed)


class TestStatefulDataLoader:
    """Cases outside the histories: sources that cannot seek, and states that contradict an epoch."""

    def resumable(self, source: Any, workers: int = 0, **options: Any) -> StatefulDataLoader:
        return StatefulDataLoader(dataset(source, workers, **options).stateful(), batch_size=None, num_workers=workers)

    @pytest.mark.parametrize("workers", [0, 1])
    def test_a_source_that_cannot_seek(self, workers: int) -> None:
        options: dict[str, Any] = {"repeat": False, "store_items": True}
        whole = list(self.resumable(Forward(), workers, **options))
        assert sorted(chain.from_iterable(whole)) == list(range(50))
        first = self.resumable(Forward(), workers, **options)
        seen = list(islice(first, 9))
        resumed = self.resumable(Forward(), workers, **options)
        resumed.load_state_dict(first.state_dict())
        exact(
            "streams",
            "a source that cannot seek, `store_items=True`, torchdata",
            seen=seen + list(resumed),
            whole=whole,
        )

    @pytest.mark.parametrize("stop", [3, 5, 8, 10])
    def test_without_set_epoch(self, stop: int) -> None:
        whole = passes(range(50), 0, 3, steps_per_epoch=5)
        first, seen = self.resumable(range(50), steps_per_epoch=5), list[list[int]]()
        while len(seen) < stop:
            seen += islice(first, stop - len(seen))
        resumed = self.resumable(range(50), steps_per_epoch=5)
        resumed.load_state_dict(first.state_dict())
        while len(seen) < 15:
            seen += resumed
        assert seen == list(chain(*whole))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_state_and_an_epoch_that_contradict_each_other(self, workers: int) -> None:
        way = "`set_epoch` of another epoch than that of torchdata's state"
        for batches, epoch in [(3, 1)] if workers else [(3, 1), (5, 1), (5, 4)]:  # during a pass, and at its end
            first = self.resumable(range(50), workers, steps_per_epoch=5)
            list(islice(first, batches))
            resumed = self.resumable(range(50), workers, steps_per_epoch=5)
            resumed.load_state_dict(first.state_dict())
            resumed.dataset.set_epoch(epoch)
            with refused("streams", way, match=f"set_epoch should be called with epoch 0 .* but got {epoch}"):
                first_error(resumed)

    def test_an_epoch_after_a_finished_one(self) -> None:
        for workers in (0, 2):
            first = self.resumable(range(50), workers, steps_per_epoch=5)
            list(first)
            resumed = self.resumable(range(50), workers, steps_per_epoch=5)
            resumed.load_state_dict(first.state_dict())
            resumed.dataset.set_epoch(1)
            assert list(resumed) == passes(range(50), workers, 2, steps_per_epoch=5)[1]

    def test_states_of_another_division_or_of_nothing(self) -> None:
        first: Any = iter(dataset(shards(), num_replicas=2, rank=0))
        next(first)
        other: Any = iter(dataset(shards(), num_replicas=3, rank=1))
        with pytest.raises(ValueError, match="num_replicas is 2 in the state but 3 here, rank is 0 .* but 1 here"):
            other.load_state_dict(first.state_dict())
        with pytest.raises(ValueError, match="state should be what state_dict"):
            other.load_state_dict({"epoch": 3})
        assert len(json.dumps(first.state_dict())) < 500

    def test_the_dataset_itself_is_refused(self) -> None:
        running = StatefulDataLoader(dataset(range(50)), batch_size=None)
        next(iter(running))
        with pytest.raises(ValueError, match=r"StatefulDataLoader, give it dataset\.stateful\(\)"):
            running.state_dict()


class Shuffles:
    """A source with a new order at every iteration."""

    length = None

    def __iter__(self) -> Iterator[int]:
        return iter(random.Random().sample(range(203), 203))

    def __call__(self, start: int) -> Iterator[int]:
        return islice(iter(self), start, None)


class DividesItself(IterableDataset[int]):
    """Gives each worker a part of the items, like datasets of Hugging Face and WebDataset."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(200) if info is None else range(info.id, 200, info.num_workers))


class TestSourcesThatLoseItems:
    """Several workers need a source whose items have fixed places. They check this by comparing their items."""

    way = "a source whose order changes, or that divides itself, over 2 workers"

    @pytest.mark.parametrize(
        "source", [Shuffles.__iter__, DividesItself, Forward], ids=["shuffles", "divides", "fixed"]
    )
    def test_an_iterable_is_not_divided(self, source: Any) -> None:
        made = set(range(9)) if source is Shuffles.__iter__ else source()
        for options in ({"workers": 2}, {"num_replicas": 2, "rank": 0}):
            with refused("streams", self.way, match="source should be a Shards, a sequence or a callable"):
                dataset(made, **options)
        found = list(loader(dataset(made, repeat=False)))
        assert len(set(chain.from_iterable(found))) == sum(map(len, found))

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (Shuffles(), "first items differ between the workers|does not continue"),
            (lambda start: range(90), "does not continue the items of source"),
            (lambda start: islice(iter(DividesItself()), start, None), "first items differ between the workers"),
            (lambda start: DividesItself(), "should not return a torch IterableDataset"),
            (Shards(range(8), lambda _: DividesItself()), "should not return a torch IterableDataset"),
            (
                Shards([0, 1], lambda _: islice(range(9), 0, 9 * (1 - get_worker_info().id))),
                "all 1 from 1 on are empty",
            ),
        ],
        ids=["shuffles", "ignores its start", "divides itself", "dataset", "dataset in shards", "nothing"],
    )
    def test_workers_compare(self, source: Any, message: str) -> None:
        with refused("streams", self.way, match=message):
            first_error(loader(dataset(source, 2, repeat=False), 2))

    def test_a_resume_from_another_order(self) -> None:
        for options in ({}, {"store_items": True}):
            running = PooledStream(Shuffles() if not options else set_of(Shuffles()), **OPTIONS, **options)
            list(islice(running, 20))
            resumed = PooledStream(Shuffles() if not options else set_of(Shuffles()), **OPTIONS, **options)
            resumed.load_state_dict(running.state_dict())
            with refused(
                "streams", "a resume over a source whose order changes", match="items of the run that was sav"
            ):
                next(resumed)

    def test_packages(self, tmp_path: Any) -> None:
        datasets = pytest.importorskip("datasets")
        table = datasets.Dataset.from_dict({"item": list(range(485))}).to_iterable_dataset(num_shards=4)
        with pytest.raises(ValueError, match="source should be a Shards"):
            dataset(table, 2, repeat=False)
        with pytest.raises(ValueError, match=r"should not return a torch IterableDataset|differ between the workers"):
            first_error(loader(dataset(table.skip, 2, repeat=False), 2, collate_fn=list))
        found = loader(dataset(table, repeat=False), collate_fn=list)
        assert sorted(item["item"] for batch in found for item in batch) == list(range(485))

    def test_empty_shards(self) -> None:
        source = Shards(["abc", "", "de", ""], list, lengths=[3, 0, 2, 0])
        for workers in (0, 2):
            found = list(loader(dataset(source, workers, repeat=False), workers))
            assert sorted(chain.from_iterable(found)) == list("abcde")
        assert sorted(chain(*dataset(Shards(["abc", "", "de"], list), repeat=False))) == list("abcde")

    def test_an_iterator_has_no_workers(self) -> None:
        with pytest.raises(ValueError, match="num_workers should be 0 for a source that is an iterator"):
            dataset(itertools.count(), 1)


def set_of(source: Any) -> Any:
    """Return an iterable that cannot seek."""

    class Again:
        def __iter__(self) -> Iterator[int]:
            return iter(source)

    return Again()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size should be at least 1"),
        ({"pool_size": 3}, ValueError, "pool_size should be at least batch_size"),
        ({"steps_per_epoch": 0}, ValueError, "steps_per_epoch should be at least 1"),
        ({"num_workers": -1}, ValueError, "num_workers should be at least 0"),
        ({"num_workers": True}, TypeError, "num_workers should be an int"),
    ],
)
def test_bad_arguments(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        PooledIterableDataset(range(9), **{**OPTIONS, **options})
