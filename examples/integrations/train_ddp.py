"""SRS with DistributedDataParallel: stop at any step, and resume on any number of processes.

    torchrun --nproc-per-node 2 train_ddp.py run --until 30
    torchrun --nproc-per-node 4 train_ddp.py run --until 60    # resumes at step 30

Each rank writes the samples of each step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    dist.init_process_group("gloo")  # "nccl" on GPUs
    rank = dist.get_rank()
    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))

    # 40 is the global batch. The number of processes and the rank come from torch.distributed.
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=options.workers)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint, step = options.folder / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        sampler.load_state_dict(saved["sampler"])
        step = saved["sampler"]["step"]

    with open(options.folder / f"rank{rank}.jsonl", "a", buffering=1) as log:
        while step < options.until:
            for indices, inputs, targets in loader:  # the rest of an effective epoch
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                print(json.dumps([step - 1, indices.tolist()]), file=log)
                if rank == 0 and (step % options.save_every == 0 or step == options.until):
                    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    saved["sampler"] = sampler.state_dict(step=step)  # the steps trained, not the steps drawn
                    torch.save(saved, checkpoint.with_suffix(".new"))
                    os.replace(checkpoint.with_suffix(".new"), checkpoint)  # a kill leaves the old or the new one
                if step == options.until:
                    break
    dist.barrier()  # until rank 0 has written the checkpoint
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
