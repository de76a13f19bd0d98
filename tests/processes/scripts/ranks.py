"""Trains on two ranks. Each rank has a share of the data, or all of it."""

from __future__ import annotations

import os
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main(rank: int, kind: str, port: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    dataset = TensorDataset(torch.arange(40))
    sampler = DistributedSampler(dataset) if kind == "distributed" else None
    loader = DataLoader(dataset, batch_size=5, sampler=sampler, shuffle=sampler is None)
    for epoch in range(4):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for _ in loader:
            torch.distributed.barrier()


if __name__ == "__main__":
    started, kind = sys.argv[1:]
    if started == "spawn":
        torch.multiprocessing.spawn(main, (kind, "29541"), nprocs=2)
    else:
        main(int(os.environ["RANK"]), kind, os.environ["MASTER_PORT"])
