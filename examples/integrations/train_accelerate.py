"""SRS with Hugging Face Accelerate: `save_state` and `load_state` keep the position in the stream.

    accelerate launch --cpu --num_processes 1 train_accelerate.py run --until 30
    torchrun --nproc-per-node 2 train_accelerate.py run --until 60    # resumes at step 30

Each rank writes the samples of each step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from replenish.integrations.accelerate import prepare
from replenish.torch import SRSBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))

    # With this `prepare`, the sampler divides the batches among the processes.
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    loader, progress = prepare(accelerator, DataLoader(dataset, batch_sampler=sampler, num_workers=options.workers))
    model = nn.Linear(8, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))

    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint"
    if checkpoint.exists():
        accelerator.load_state(str(checkpoint))

    with open(options.folder / f"rank{accelerator.process_index}.jsonl", "a") as log:
        while progress.step < options.until:
            for indices, inputs, targets in loader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                print(json.dumps([progress.step, indices.tolist()]), file=log)
                progress.step += 1
                if progress.step == options.until:
                    break
    accelerator.save_state(str(checkpoint))
    accelerator.wait_for_everyone()  # until rank 0 has written the checkpoint
    accelerator.end_training()


if __name__ == "__main__":
    main()
