"""SRS with Ray Train: the same stream on any number of workers.

    python train_ray.py run --until 30
    python train_ray.py run --until 60 --workers 2    # resumes at step 30

Each worker writes the samples of each step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import ray
import torch
import torch.distributed as dist
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler


def train(config: dict[str, object]) -> None:
    """Train in one worker. Ray has initialised torch.distributed, which tells the sampler its rank."""
    folder, until = Path(str(config["folder"])), int(str(config["until"]))
    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    # Do not call prepare_data_loader(loader): it would replace the sampler with a DistributedSampler.
    loader = DataLoader(dataset, batch_sampler=sampler)
    model = prepare_model(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    checkpoint, step = folder / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        getattr(model, "module", model).load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        sampler.load_state_dict(saved["sampler"])
        step = saved["sampler"]["step"]
    with open(folder / f"rank{sampler.rank}.jsonl", "a", buffering=1) as log:
        while step < until:
            for indices, inputs, targets in loader:  # the rest of an effective epoch
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(json.dumps([step, indices.tolist()]), file=log)
                step += 1
                if step == until:
                    break
    if sampler.rank == 0:
        saved = {"model": getattr(model, "module", model).state_dict(), "optimizer": optimizer.state_dict()}
        saved["sampler"] = sampler.state_dict(step=step)
        torch.save(saved, checkpoint.with_suffix(".new"))
        os.replace(checkpoint.with_suffix(".new"), checkpoint)
    if dist.is_initialized():
        dist.barrier()  # until rank 0 has written the checkpoint


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)

    ray.init(num_cpus=options.workers + 1)  # on a cluster: ray.init() finds it
    TorchTrainer(
        train,
        train_loop_config={"folder": str(options.folder.resolve()), "until": options.until},
        scaling_config=ScalingConfig(num_workers=options.workers, use_gpu=False),
    ).fit()
    ray.shutdown()


if __name__ == "__main__":
    main()
