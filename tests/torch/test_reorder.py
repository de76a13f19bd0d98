"""`reorder` changes the order of a loader, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
import torch
from contracts import as_lists
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from replenish import RandomReshuffling, SequencedReplacement
from replenish.torch import SRSBatchSampler, SRSSampler, reorder

DATA = TensorDataset(torch.arange(103))


def collate(batch: Any) -> list[int]:
    return [int(item) for (item,) in batch]


def init_worker(number: int) -> None:
    torch.manual_seed(number)


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(DATA, **{"batch_size": 8, "shuffle": True, "collate_fn": collate, **options})


def stream(start: int, stop: int, batch_size: int = 8) -> list[list[int]]:
    return as_lists(SequencedReplacement(103, batch_size, seed=5).batches(start, stop))


class OfTheirOwn(DataLoader[Any]):
    """A subclass with an attribute and a different constructor."""

    def __init__(self, name: str) -> None:
        super().__init__(DATA, batch_size=8, shuffle=True, collate_fn=collate)
        self.name = name


class RepeatSampler:
    """Like the samplers of timm and ultralytics."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from iter(self.sampler)


def test_everything_else_stays_the_same() -> None:
    generator = torch.Generator().manual_seed(9)
    old = loader(num_workers=2, pin_memory=False, prefetch_factor=3, persistent_workers=True, generator=generator,
                 worker_init_fn=init_worker, timeout=30, drop_last=True)  # fmt: skip
    new = reorder(old, seed=5)
    assert type(new) is DataLoader
    changed = {"batch_sampler", "sampler", "_iterator"}
    assert {name: value for name, value in vars(new).items() if name not in changed} == {
        name: value for name, value in vars(old).items() if name not in changed
    }
    assert (len(new), len(old)) == (12, 12)
    assert [batch for _ in range(2) for batch in new] == stream(0, 24)
    assert isinstance(old.sampler, RandomSampler), "the original loader must not change"
    assert sorted(item for batch in old for item in batch) != stream(0, 12)


def test_subclasses_and_wrappers() -> None:
    own = reorder(OfTheirOwn("theirs"), seed=5)
    assert (type(own), own.name) == (OfTheirOwn, "theirs")
    assert list(own) == stream(0, 13)

    class Prefetch:
        def __init__(self, loader: Any) -> None:
            self.loader, self.mean = loader, 0.5

        def __iter__(self) -> Iterator[Any]:
            return iter(self.loader)

    prefetch = reorder(Prefetch(loader()), seed=5)
    assert list(prefetch) == stream(0, 13)
    assert prefetch.mean == 0.5


def test_processes() -> None:
    shares = []
    for rank in range(4):
        sampler: Any = DistributedSampler(DATA, num_replicas=4, rank=rank)
        new = reorder(loader(batch_size=2, shuffle=None, sampler=sampler), seed=5)
        assert new.batch_size == 2
        shares.append(list(new))
    assert [list(chain.from_iterable(step)) for step in zip(*shares, strict=True)] == stream(0, 13)


def test_other_orders() -> None:
    assert list(reorder(loader(), "reshuffling", seed=5)) == as_lists(RandomReshuffling(103, 8, seed=5).batches(0, 13))
    dropped = reorder(loader(drop_last=True), "reshuffling")
    assert (len(dropped), {len(batch) for batch in dropped}) == (12, {8})
    assert list(reorder(loader(), SequencedReplacement(103, 8, seed=5))) == stream(0, 13)
    again = reorder(reorder(loader(), "independent"), seed=5)
    assert list(again) == stream(0, 13)
    ours = DataLoader(DATA, sampler=SRSSampler(DATA, 8, seed=1), batch_size=8, collate_fn=collate)
    assert list(reorder(ours, seed=5)) == stream(0, 13)
    batches = DataLoader(DATA, batch_sampler=SRSBatchSampler(DATA, 8, seed=1), collate_fn=collate)
    assert list(reorder(batches, seed=5)) == stream(0, 13)


def test_loaders_that_cannot_be_reordered_are_refused() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    class Cut(BatchSampler):
        def __iter__(self) -> Iterator[list[int]]:
            return iter([])

    for wrong, message in [
        ([1, 2], "loader should be a torch DataLoader, but got a builtins.list"),
        (DataLoader(Stream()), "loader should be over a dataset with a length.*replenish.stream"),
        (loader(batch_size=None, shuffle=False), "but got none, since it has no batch_size"),
        (
            DataLoader(DATA, batch_sampler=RepeatSampler(BatchSampler(RandomSampler(DATA), 8, False))),
            "a RepeatSampler is around it, which may read ahead into the next epoch",
        ),
        (DataLoader(DATA, batch_sampler=Cut(RandomSampler(DATA), 8, False)), "batch sampler of torch.*but got a Cut"),
        (loader(shuffle=None, sampler=SubsetRandomSampler([1, 2])), "its sampler is a SubsetRandomSampler"),
        (loader(shuffle=None, sampler=WeightedRandomSampler([1.0], 103)), "its sampler is a WeightedRandomSampler"),
        (loader(shuffle=None, sampler=RandomSampler(DATA, num_samples=9)), "its sampler is a RandomSampler"),
    ]:
        with pytest.raises(TypeError, match=message):
            reorder(wrong)
    with pytest.raises(ValueError, match="order should be one of srs"):
        reorder(loader(), "sorted")
    with pytest.raises(ValueError, match="order should have the loader's 103 samples and batches of 8.* 100 and 8"):
        reorder(loader(), SequencedReplacement(100, 8))
