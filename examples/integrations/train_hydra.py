"""SRS with Hydra: the sampler, its seed and its pool are in the configuration, and an override changes them.

    python train_hydra.py folder=run until=30
    python train_hydra.py folder=run until=60                        # resumes at step 30
    python train_hydra.py folder=other sampler.seed=4 sampler.pool_size=2000

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hydra
import torch
from hydra.core.config_store import ConfigStore
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# The contents of a file conf/train.yaml.
ConfigStore.instance().store(
    "train",
    {
        "folder": "???",
        "until": 60,
        "sampler": {"_target_": "replenish.torch.SRSBatchSampler", "batch_size": 40, "seed": 3, "pool_size": None},
    },
)


@hydra.main(version_base=None, config_name="train")
def main(config: Any) -> None:
    folder = Path(config.folder)
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "checkpoint.pt"
    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))

    sampler = hydra.utils.instantiate(config.sampler, data_source=range(1000))  # Hydra would iterate over a dataset
    loader = DataLoader(dataset, batch_sampler=sampler)
    model = nn.Linear(8, 1)
    step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        sampler.load_state_dict(saved["sampler"])  # raises if the configuration differs
        step = saved["sampler"]["step"]

    with open(folder / "rank0.jsonl", "a") as log:
        while step < config.until:
            for indices, inputs, targets in loader:
                model.zero_grad()
                nn.functional.mse_loss(model(inputs), targets).backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter -= 0.01 * parameter.grad
                print(json.dumps([step, indices.tolist()]), file=log)
                step += 1
                if step == config.until:
                    break
    torch.save({"model": model.state_dict(), "sampler": sampler.state_dict(step)}, checkpoint)


if __name__ == "__main__":
    main()
