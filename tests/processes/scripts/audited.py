"""Trains with healthy and faulty loaders, and evaluates with another one."""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

NUMBER = 1000
DATA = TensorDataset(torch.arange(NUMBER), torch.arange(NUMBER) // 100)


class Stream(IterableDataset):
    """Items in sorted order."""

    def __iter__(self):
        return iter(range(200))


class Augmented(Dataset):
    def __len__(self):
        return NUMBER

    def __getitem__(self, index):
        return index, float(np.random.random())  # noqa: NPY002


def seed_alike(worker):
    np.random.seed(0)  # noqa: NPY002


if __name__ == "__main__":
    forgotten = DistributedSampler(DATA, num_replicas=2, rank=0)
    called = DistributedSampler(DATA, num_replicas=2, rank=0)
    weighted = WeightedRandomSampler([1.0] * NUMBER, NUMBER)
    loaders = {
        "healthy": DataLoader(DATA, batch_size=10, shuffle=True),
        "forgotten": DataLoader(DATA, batch_size=10, sampler=forgotten),
        "called": DataLoader(DATA, batch_size=10, sampler=called),
        "dropped": DataLoader(DATA, batch_size=64, drop_last=True),
        "weighted": DataLoader(DATA, batch_size=10, sampler=weighted),
        "alike": DataLoader(Augmented(), batch_size=10, shuffle=True, num_workers=2, worker_init_fn=seed_alike),
        "stream": DataLoader(Stream(), batch_size=10),
    }
    evaluation = DataLoader(DATA, batch_size=100)
    with torch.no_grad():
        assert sum(len(batch) for batch, _ in evaluation) == NUMBER
    drawn = []
    for epoch in range(int(sys.argv[1])):
        called.set_epoch(epoch)
        for name, loader in loaders.items():
            drawn += [name for _ in loader]
        print("epoch", epoch, flush=True)
