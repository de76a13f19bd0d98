"""Streams: random histories of kills, states, seeks, epochs and looks, each compared with the run not interrupted."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest
from killing import kept_after_kills
from made_sources import SOURCES
from torchdata.stateful_dataloader import StatefulDataLoader
from ways import exact, refused

from replenish.stream import PooledStream
from replenish.torch import PooledIterableDataset


def random_options(draw: random.Random) -> tuple[str, dict[str, Any]]:
    """Return the name of a source and what a stream over it is made with."""
    name = draw.choice(list(SOURCES))
    batch_size, pool_size = draw.choice([(4, 4), (4, 10), (3, 60), (1, 7)])
    return name, {
        "batch_size": batch_size,
        "pool_size": pool_size,
        "seed": draw.randint(0, 9),
        "repeat": draw.random() < 0.6,
        "store_items": name == "cannot seek" or draw.random() < 0.3,
        "seek_cost": draw.choice([1, 5, 1024]),
    }


@pytest.mark.parametrize("block", range(4))
def test_a_stream_is_where_it_was_put(block: int) -> None:
    """`next`, `seek`, `state_dict` and `load_state_dict` in any order, also into a stream that has been read from."""
    for seed in range(60 * block, 60 * block + 60):
        draw = random.Random(seed)
        name, options = random_options(draw)
        whole = list(islice(PooledStream(SOURCES[name](), **options), 60))
        streams = [PooledStream(SOURCES[name](), **options) for _ in range(2)]
        places, saved = [0, 0], None
        for _ in range(25):
            number, act = draw.randrange(2), draw.choice(["next", "next", "save", "load", "seek", "new"])
            stream = streams[number]
            if act == "next":
                count = draw.randint(1, 9)
                expected = whole[places[number] : places[number] + count]
                assert list(islice(stream, len(expected))) == expected, (seed, name, options)
                places[number] += len(expected)
            elif act == "save":
                saved = (places[number], stream.state_dict())
            elif act == "load" and saved is not None:
                places[number] = saved[0]
                stream.load_state_dict(saved[1])
            elif act == "seek" and stream.seekable:
                places[number] = draw.randint(0, len(whole))
                stream.seek(places[number])
            elif act == "new":
                streams[number], places[number] = PooledStream(SOURCES[name](), **options), 0
            assert streams[number].step == places[number]


class Script:
    """A training script over a stream's loader: what it does depends on its own counts alone."""

    def __init__(self, seed: int, workers: int) -> None:
        draw = random.Random(seed)
        self.name, self.options = random_options(draw)
        if self.options["repeat"]:
            self.options["steps_per_epoch"] = draw.choice([2, 5, 8])
        self.limit = draw.choice([None, None, 1, 3])
        self.calls_set_epoch = self.limit is not None or draw.random() < 0.5
        self.epochs = list(range(draw.randint(1, 4)))
        if self.calls_set_epoch and draw.random() < 0.5:  # epochs of any numbers; of what cannot seek, forward
            self.epochs = draw.sample(range(7), 4)
            if self.name == "cannot seek":
                self.epochs.sort()
        self.set_epoch_first = draw.random() < 0.5
        # Workers that have prefetched the end of an epoch have ended it.
        self.looks = (not workers or self.calls_set_epoch) and draw.random() < 0.3
        self.saves_every = draw.randint(1, 6)
        in_order = self.epochs == list(range(len(self.epochs)))
        self.saves_at_ends = in_order and self.limit is None and draw.random() < 0.5
        self.loader: dict[str, Any] = {"num_workers": workers, "snapshot_every_n_steps": draw.choice([1, 1, 3, 100])}
        self.loader["persistent_workers"] = workers > 0 and draw.random() < 0.5

    def run(self, checkpoint: Any, kill_after: int) -> tuple[list[Any], Any, bool]:
        """Train; return what was trained on since the checkpoint, the last checkpoint, and whether it was killed."""
        dataset = PooledIterableDataset(SOURCES[self.name](), **self.options)
        loader = StatefulDataLoader(dataset, batch_size=None, **self.loader)
        if self.looks:
            next(iter(loader))
        first, done = 0, 0
        if checkpoint is not None:
            first, done = checkpoint["round"], checkpoint["done"]
            if self.set_epoch_first and self.calls_set_epoch and first < len(self.epochs):
                dataset.set_epoch(self.epochs[first])
            loader.load_state_dict(checkpoint["loader"])
        seen: list[Any] = []

        def save(number: int, done: int) -> dict[str, Any]:
            return {"round": number, "done": done, "loader": loader.state_dict(), "seen": len(seen)}

        for number in range(first, len(self.epochs)):
            if self.calls_set_epoch:
                dataset.set_epoch(self.epochs[number])
            for batch in loader:
                seen.append(batch)
                done += 1
                # Of a pass that is about to be left, the loader's state would go on with the rest of it.
                if done % self.saves_every == 0 and done != self.limit:
                    checkpoint = save(number, done)
                if len(seen) == kill_after:
                    return seen, checkpoint, True
                if done == self.limit:
                    break
            done = 0
            if self.saves_at_ends:
                checkpoint = save(number + 1, 0)
        return seen, checkpoint, False

    def check(self, seed: int) -> None:
        whole, _, _ = self.run(None, kill_after=10**9)
        kept = kept_after_kills(self.run, seed, most_kills=9)
        way = "`PooledIterableDataset`, any step, epochs with or without `set_epoch`"
        if self.name == "cannot seek":
            way = "a source that cannot seek, `store_items=True`"
        exact("streams, torchdata", way, seen=kept, whole=whole, where=(seed, vars(self)))


@pytest.mark.parametrize("block", range(4))
def test_histories(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        Script(seed, workers=0).check(seed)


@pytest.mark.parametrize("workers", [1, 2])
def test_histories_with_workers(workers: int) -> None:
    for seed in range(1000 * workers, 1000 * workers + 10):
        Script(seed, workers).check(seed)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_and_an_epoch_that_contradict_each_other(workers: int) -> None:
    def make() -> tuple[PooledIterableDataset[int], StatefulDataLoader]:
        dataset = PooledIterableDataset(range(50), batch_size=4, pool_size=10, steps_per_epoch=5)
        return dataset, StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    for batches in (3, 5):  # within a pass, and at its end
        _, loader = make()
        list(islice(loader, batches))
        dataset, resumed = make()
        resumed.load_state_dict(loader.state_dict())
        dataset.set_epoch(4)
        way = "`set_epoch` of another epoch than that of the loader's state"
        with refused("streams, torchdata", way, match="set_epoch should name the epoch 0 of the loader's .* got 4"):
            next(iter(resumed))


def test_an_epoch_that_is_loaded_is_the_next_whatever_went_before() -> None:
    dataset = PooledIterableDataset(range(50), batch_size=4, pool_size=10, steps_per_epoch=5)
    first, second, _ = list(dataset), list(dataset), list(dataset)
    dataset.load_state_dict({"epoch": 1})
    assert list(dataset) == second
    dataset.load_state_dict({"epoch": 0})
    assert list(dataset) == first
