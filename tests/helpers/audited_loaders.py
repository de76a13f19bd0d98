"""Datasets, streams and loaders for the tests of audits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data.distributed import DistributedSampler


class Augmented(Dataset):
    """A thousand samples, each with a random number from the generator that `mode` names."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.own = np.random.Generator(np.random.Philox(5))

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> tuple[int, float]:
        if self.mode == "own":  # in every epoch, all workers inherit it in the same state
            return index, float(self.own.random())
        return index, float(np.random.random()) if self.mode == "numpy" else float(torch.rand(()))  # noqa: NPY002


def seed_all_alike(worker: int) -> None:
    np.random.seed(0)  # noqa: NPY002


class Buffered(IterableDataset):
    """Sorted numbers in shards. Every pass draws a new order of the shards and shuffles in a buffer."""

    def __init__(self, number: int, buffer: int, shards: int = 1) -> None:
        self.number, self.buffer, self.shards = number, buffer, shards

    def __iter__(self) -> Iterator[int]:
        held: list[int] = []
        size = self.number // self.shards
        for shard in torch.randperm(self.shards).tolist():
            for item in range(shard * size, (shard + 1) * size):
                held.append(item)
                if len(held) > self.buffer:
                    yield held.pop(int(torch.randint(len(held), ())))
        yield from (held[place] for place in torch.randperm(len(held)).tolist())


def of_rank(dataset: Any, rank: int, **options: Any) -> DataLoader[Any]:
    """Return the loader of one rank of two."""
    return DataLoader(dataset, batch_size=5, sampler=DistributedSampler(dataset, 2, rank, **options))


def with_epochs(loaders: Any, *, always: int | None = None) -> dict[str, Any]:
    """Return arguments of `audit` for a training that calls `set_epoch`, with the epoch or always with `always`."""
    each = loaders if isinstance(loaders, list) else [loaders]

    def before_epoch(epoch: int) -> None:
        for one in each:
            one.sampler.set_epoch(epoch if always is None else always)

    return {"loader": loaders, "before_epoch": before_epoch}
