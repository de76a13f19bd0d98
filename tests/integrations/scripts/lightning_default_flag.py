"""Lightning or Fabric with their default flag on `--devices` processes: each writes what happened to its sampler."""

from __future__ import annotations

import argparse
from pathlib import Path

import lightning as L
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

from replenish import SequencedReplacement
from replenish.torch import OrderBatchSampler, SRSBatchSampler, SRSSampler

EXPECTED = [batch.tolist() for batch in SequencedReplacement(1000, 40, seed=3).batches(0, 25)]


def loader(kind: str) -> DataLoader:
    dataset = TensorDataset(torch.arange(1000))
    if kind == "SRSSampler":
        sampler = SRSSampler(dataset, 40, seed=3)
        return DataLoader(dataset, sampler=sampler, batch_size=sampler.share_size)
    if kind == "OrderBatchSampler":
        return DataLoader(dataset, batch_sampler=OrderBatchSampler(SequencedReplacement(1000, 40, seed=3)))
    return DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 40, seed=3))


class Module(L.LightningModule):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.seen = kind, []
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def train_dataloader(self) -> DataLoader:
        return loader(self.kind)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        self.seen.append(batch[0].tolist())
        return self.weight

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["fabric", "trainer"])
    parser.add_argument("kind")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()
    strategy = "ddp" if options.devices > 1 else "auto"
    rank = 0
    try:
        if options.what == "fabric":
            fabric = Fabric(accelerator="cpu", devices=options.devices, strategy=strategy)
            fabric.launch()
            rank = fabric.global_rank
            seen = [batch.tolist() for (batch,) in fabric.setup_dataloaders(loader(options.kind))]
        else:
            quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
            trainer = L.Trainer(accelerator="cpu", devices=options.devices, strategy=strategy, max_epochs=1, **quiet)
            rank = trainer.global_rank
            module = Module(options.kind)
            trainer.fit(module)
            seen = module.seen
        share = slice(rank * 40 // options.devices, (rank + 1) * 40 // options.devices)
        result = "exact" if seen == [batch[share] for batch in EXPECTED] else f"WRONG {len(seen)} {seen[:1]}"
    except (TypeError, ValueError) as error:
        result = f"{type(error).__name__}: {error}"
    (options.folder / f"result{rank}.txt").write_text(result)


if __name__ == "__main__":
    main()
