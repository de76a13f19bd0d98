"""Streams in loaders: epochs follow each other, resumes are exact, and no source loses items to its own division."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from made_sources import SOURCES, Forward, OfUnknownLength
from torch.utils.data import DataLoader, get_worker_info
from ways import exact, refused

from replenish.stream import PooledStream, Shards
from replenish.torch import PooledIterableDataset


class DividesItself(Forward):
    """As datasets of Hugging Face and WebDataset do: a part of the items in each worker."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(self._items) if info is None else range(info.id, self._items, info.num_workers))


@pytest.mark.parametrize("pool_size", [4, 7, 60])
@pytest.mark.parametrize("repeat", [True, False])
def test_a_state_taken_after_a_seek(pool_size: int, repeat: bool) -> None:
    for source in (OfUnknownLength(), Shards([range(20), range(20, 50)], list)):
        options: dict[str, Any] = {"batch_size": 4, "pool_size": pool_size, "repeat": repeat}
        expected = list(islice(PooledStream(source, **options), 40))
        for step in range(len(expected)):
            sought, resumed = PooledStream(source, **options), PooledStream(source, **options)
            sought.seek(step)
            state = sought.state_dict()
            resumed.load_state_dict(state)
            again = PooledStream(source, **options)
            again.load_state_dict(resumed.state_dict())
            assert next(sought) == next(resumed) == next(again) == expected[step], step


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
@pytest.mark.parametrize("name", SOURCES)
def test_epochs_follow_each_other_without_set_epoch(name: str, options: dict[str, Any]) -> None:
    """As Lightning leaves them. A pass that is left early is not counted."""

    def passes(with_set_epoch: bool) -> list[Any]:
        dataset = PooledIterableDataset(SOURCES[name](), batch_size=4, pool_size=10, steps_per_epoch=6)
        loader = DataLoader(dataset, batch_size=None, **options)
        seen = []
        for epoch in range(3):
            if with_set_epoch:
                dataset.set_epoch(epoch)
            seen.append(list(loader))
        assert dataset.epoch == 3
        return seen

    assert passes(True) == passes(False)
    first, second, _ = passes(False)
    assert first != second


def test_a_look_at_the_data_is_not_an_epoch() -> None:
    dataset = PooledIterableDataset(range(100), batch_size=4, pool_size=10, steps_per_epoch=20)
    loader = DataLoader(dataset, batch_size=None)
    first = next(iter(loader))
    assert dataset.epoch == 0
    assert next(iter(loader)) == first


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_source_that_divides_itself_loses_nothing(workers: int, tmp_path: Path) -> None:
    sources: dict[str, Any] = {"own": DividesItself(485)}
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"item": list(range(485))})
    sources["Hugging Face"] = table.to_iterable_dataset(num_shards=4)
    for name, source in sources.items():
        dataset = PooledIterableDataset(source, batch_size=10, pool_size=100, repeat=False)
        batches = DataLoader(dataset, batch_size=None, collate_fn=list, num_workers=workers)
        items = [item["item"] if isinstance(item, dict) else item for batch in batches for item in batch]
        way = "a source that divides itself among workers"
        exact("streams, torchdata", way, seen=sorted(items), whole=list(range(485)), where=name)


@pytest.mark.filterwarnings("ignore")  # webdataset leaves files to the garbage collector
def test_webdataset_loses_nothing(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    for shard in range(3):
        with wds.TarWriter(str(tmp_path / f"{shard}.tar")) as file:
            for item in range(20):
                file.write({"__key__": f"{shard}-{item}", "txt": str(20 * shard + item)})
    source = wds.WebDataset([str(tmp_path / f"{shard}.tar") for shard in range(3)], shardshuffle=False)
    for workers in (0, 2):
        dataset = PooledIterableDataset(source, batch_size=7, pool_size=20, repeat=False)
        batches = DataLoader(dataset, batch_size=None, collate_fn=list, num_workers=workers)
        assert sorted(int(item["txt"]) for batch in batches for item in batch) == list(range(60))
    gc.collect()
    divided = wds.WebDataset(["0.tar"], nodesplitter=wds.split_by_node, shardshuffle=False)
    with pytest.raises(ValueError, match="source should not be divided among processes.*got a WebDataset that is"):
        PooledIterableDataset(divided, batch_size=7, pool_size=20, steps_per_epoch=3, num_replicas=2, rank=0)


def test_a_source_divided_among_processes_is_refused() -> None:
    datasets = pytest.importorskip("datasets")
    from datasets.distributed import split_dataset_by_node

    table = datasets.Dataset.from_dict({"item": list(range(485))}).to_iterable_dataset(num_shards=4)
    divided = split_dataset_by_node(table, rank=0, world_size=2)
    message = "source should not be divided among processes"
    with refused("streams, torchdata", "a source divided among processes", match=message):
        PooledIterableDataset(divided, batch_size=10, pool_size=100, steps_per_epoch=5, num_replicas=2, rank=0)
