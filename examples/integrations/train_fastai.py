"""SRS with fastai: a Learner with a torch DataLoader, and a callback for the position.

    python train_fastai.py run --epochs 2
    python train_fastai.py run --epochs 1    # continues after the second epoch

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler


class Position(Callback):
    """Counts the steps trained, begins every epoch at that step, and writes the samples of each step."""

    def __init__(self, sampler: SRSBatchSampler, file: Path) -> None:
        self.sampler, self.file = sampler, file
        self.step = sampler.state_dict()["step"]

    def before_train(self) -> None:
        self.sampler.seek(self.step)

    def before_batch(self) -> None:
        inputs, numbers = self.xb
        self.learn.xb = (inputs,)
        if self.training:
            with open(self.file, "a") as log:
                print(json.dumps([self.step, numbers.tolist()]), file=log)

    def after_batch(self) -> None:
        if self.training:
            self.step += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    position = options.folder / "position.json"

    torch.manual_seed(0)
    features = torch.randn(1000, 8)
    dataset = TensorDataset(features, torch.arange(1000), features.sum(1, keepdim=True))
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    train = DataLoader(dataset, batch_sampler=sampler, num_workers=2)
    dls = DataLoaders(train, DataLoader(dataset, batch_size=200), device=torch.device("cpu"))
    dls.n_inp = 2

    learn = Learner(dls, nn.Linear(8, 1), loss_func=nn.MSELoss(), path=options.folder)
    if position.exists():
        learn.load("trained")
        sampler.load_state_dict(json.loads(position.read_text()))
    counted = Position(sampler, options.folder / "rank0.jsonl")
    learn.fit(options.epochs, lr=0.01, cbs=counted)
    learn.save("trained")
    position.write_text(json.dumps(sampler.state_dict(counted.step)))


if __name__ == "__main__":
    main()
