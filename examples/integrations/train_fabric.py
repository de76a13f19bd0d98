"""SRS with Lightning Fabric: the same stream on any number of processes.

    python train_fabric.py run --until 30
    python train_fabric.py run --until 60 --devices 2    # resumes at step 30

Each rank writes the samples of each step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import Progress, SRSBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()

    fabric = Fabric(accelerator="cpu", devices=options.devices, strategy="ddp" if options.devices > 1 else "auto")
    fabric.launch()
    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))

    # The sampler divides its batches among the processes, so Fabric must not.
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    loader = fabric.setup_dataloaders(DataLoader(dataset, batch_sampler=sampler), use_distributed_sampler=False)
    model = nn.Linear(8, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))

    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.ckpt"
    progress = Progress(sampler)
    state = {"model": model, "optimizer": optimizer, "progress": progress}
    if checkpoint.exists():
        fabric.load(checkpoint, state)

    with open(options.folder / f"rank{fabric.global_rank}.jsonl", "a") as log:
        while progress.step < options.until:
            for indices, inputs, targets in loader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                fabric.backward(loss)
                optimizer.step()
                print(json.dumps([progress.step, indices.tolist()]), file=log)
                progress.step += 1
                if progress.step == options.until:
                    break
    fabric.save(checkpoint, state)


if __name__ == "__main__":
    main()
