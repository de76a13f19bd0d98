"""SRS with the Lightning Trainer: a callback keeps the position in the Trainer's own checkpoints.

    python train_lightning.py run --until 30
    python train_lightning.py run --until 60 --devices 2    # resumes at step 30

Each rank writes the samples of each step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from replenish.integrations.lightning import SamplerCheckpoint
from replenish.torch import SRSBatchSampler


class Model(L.LightningModule):
    """A linear map that writes the samples of each step to a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.layer = nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        indices, inputs, targets = batch
        with open(self.folder / f"rank{self.global_rank}.jsonl", "a") as log:
            print(json.dumps([self.global_step, indices.tolist()]), file=log)
        return nn.functional.mse_loss(self.layer(inputs), targets)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.ckpt"

    features = torch.randn(1000, 8, generator=torch.Generator().manual_seed(0))
    dataset = TensorDataset(torch.arange(1000), features, features.sum(1, keepdim=True))
    sampler = SRSBatchSampler(dataset, 40, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler)
    trainer = L.Trainer(
        callbacks=[SamplerCheckpoint(sampler)],
        use_distributed_sampler=False,  # the sampler divides its batches among the processes
        accelerator="cpu",
        devices=options.devices,
        strategy="ddp" if options.devices > 1 else "auto",
        max_steps=options.until,
        max_epochs=-1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(options.folder), loader, ckpt_path=checkpoint if checkpoint.exists() else None)
    trainer.save_checkpoint(checkpoint)


if __name__ == "__main__":
    main()
