"""SRS with torchdata's StatefulDataLoader: the loader's own state resumes the stream at any step.

    python train_torchdata.py run --until 30
    python train_torchdata.py run --until 60    # resumes at step 30

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish.integrations.torchdata import StatefulSampler
from replenish.torch import SRSBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))
    sampler = StatefulSampler(SRSBatchSampler(dataset, 40, seed=3))
    loader = StatefulDataLoader(dataset, batch_sampler=sampler, num_workers=options.workers)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint, step = options.folder / "checkpoint.pt", 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=False)  # the loader's state holds more than plain tensors
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])  # accounts for the workers' prefetching, unlike the sampler's state
        step = saved["step"]

    with open(options.folder / "rank0.jsonl", "a") as log:
        while step < options.until:
            for indices, inputs, targets in loader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                print(json.dumps([step - 1, indices.tolist()]), file=log)
                if step == options.until:
                    break
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**parts, "loader": loader.state_dict(), "step": step}, checkpoint)


if __name__ == "__main__":
    main()
