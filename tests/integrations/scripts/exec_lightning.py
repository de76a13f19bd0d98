"""A typical Lightning training that does not use replenish. Writes the samples of each step."""

import json
import sys
from pathlib import Path

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Module(lightning.LightningModule):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.layer = torch.nn.Linear(4, 2)
        self.seen = []

    def training_step(self, batch):
        data, index = batch
        self.seen.append(index.tolist())
        return self.layer(data).square().mean()

    def validation_step(self, batch):
        self.log("val_loss", self.layer(batch[0]).square().mean())

    def on_train_end(self):
        Path(self.folder, f"rank{self.global_rank}.json").write_text(json.dumps(self.seen))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    folder, devices = sys.argv[1], int(sys.argv[2])
    dataset = TensorDataset(torch.randn(101, 4), torch.arange(101))
    train = DataLoader(dataset, batch_size=8, shuffle=True)
    validation = DataLoader(dataset, batch_size=16)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=devices,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(folder), train, validation)
