"""A typical DistributedDataParallel training, started by torchrun or, with --spawn, by torch.multiprocessing."""

import argparse
import gc
import json
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(args):
    rank = dist.get_rank()
    torch.manual_seed(rank)
    dataset = TensorDataset(torch.randn(101, 4), torch.arange(101))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = []
    for epoch in range(args.first_epoch, args.first_epoch + 2):
        sampler.set_epoch(epoch)
        for data, index in loader:
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()
            seen.append(index.tolist())
    with open(os.path.join(args.folder, f"rank{rank}.json"), "w") as file:
        json.dump(seen, file)
    dist.barrier()
    dist.destroy_process_group()


def spawned(rank, args):
    dist.init_process_group("gloo", init_method=f"file://{args.folder}/rendezvous", rank=rank, world_size=args.spawn)
    train(args)
    gc.collect()  # frees the process group, whose threads can abort a process at its exit (pytorch#179291)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--first-epoch", type=int, default=0)
    parser.add_argument("--spawn", type=int)
    args = parser.parse_args()
    if args.spawn:
        mp.spawn(spawned, args=(args,), nprocs=args.spawn)
    else:
        dist.init_process_group("gloo")
        train(args)


if __name__ == "__main__":
    main()
    gc.collect()
