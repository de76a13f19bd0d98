"""A loader prepared by Accelerate with split_batches=True: train `--until` a step, resume by skip_first_batches."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trained", type=int, default=0)
    parser.add_argument("--until", type=int, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
    dataset = TensorDataset(torch.arange(1000))
    # One replica: Accelerate divides the whole batches.
    sampler = SRSBatchSampler(dataset, 40, seed=3, num_replicas=1, rank=0)
    loader = accelerator.prepare(DataLoader(dataset, batch_sampler=sampler))
    assert len(loader) == 25
    step = options.trained
    with open(options.folder / f"rank{accelerator.process_index}.jsonl", "a") as log:
        while step < options.until:
            epoch, done = divmod(step, len(loader))
            part = accelerator.skip_first_batches(loader, done) if done else loader
            part.set_epoch(epoch)  # reaches the sampler where Accelerate wraps it in nothing ...
            sampler.set_epoch(epoch)  # ... and this where it does
            for (indices,) in part:
                print(json.dumps([step, indices.tolist()]), file=log)
                step += 1
                if step == options.until:
                    break
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
