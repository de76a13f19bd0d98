"""SRS with fastai: its own DataLoaders and Learner, and one line for the order.

    python train_fastai.py run --epochs 2
    python train_fastai.py run --epochs 1    # goes on after the second epoch

Which samples were seen at which step is written to `run/rank0.jsonl`.
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
from torch.utils.data import TensorDataset

from replenish.torch import reorder


class WriteDown(Callback):
    """Writes which samples a step has."""

    def __init__(self, file: Path, step: int) -> None:
        self.file, self.step = file, step

    def before_batch(self) -> None:
        if self.training:
            inputs, numbers = self.xb
            with open(self.file, "a") as log:
                print(json.dumps([self.step, numbers.tolist()]), file=log)
            self.learn.xb = (inputs,)
            self.step += 1
        else:
            self.learn.xb = self.xb[:1]


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
    dls = DataLoaders.from_dsets(dataset, dataset, bs=40, num_workers=2, device=torch.device("cpu"))
    dls.train = reorder(dls.train, order="srs", seed=3)

    learn = Learner(dls, nn.Linear(8, 1), loss_func=nn.MSELoss(), path=options.folder)
    if position.exists():
        learn.load("trained")
        dls.train.sampler.load_state_dict(json.loads(position.read_text()))
    step = dls.train.sampler.state_dict()["step"]
    learn.fit(options.epochs, lr=0.01, cbs=WriteDown(options.folder / "rank0.jsonl", step))
    learn.save("trained")
    position.write_text(json.dumps(dls.train.sampler.state_dict()))


if __name__ == "__main__":
    main()
