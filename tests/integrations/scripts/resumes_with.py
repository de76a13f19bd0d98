"""Trains with a framework as in its documentation, saves every six steps, and resumes from a checkpoint."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

EPOCHS, EVERY = 4, 6
way, *resume = sys.argv[1:]
torch.manual_seed(0)
DATA = TensorDataset(torch.arange(100.0)[:, None], torch.arange(100) % 2)


class Named(Dataset):
    """The data in the form that Transformers expects."""

    def __len__(self) -> int:
        return len(DATA)

    def __getitem__(self, index: int) -> dict[str, Any]:
        data, label = DATA[index]
        return {"data": data, "labels": label}


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 2)

    def forward(self, data: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": nn.functional.cross_entropy(self.layer(data), labels)}


def stateful() -> None:
    """Save and load the state of torchdata's StatefulDataLoader."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    loader = StatefulDataLoader(DATA, batch_size=10, shuffle=True)
    network, step = Network(), 0
    optimizer = torch.optim.SGD(network.parameters(), 1e-6)
    if resume:
        state = torch.load(resume[0], weights_only=False)
        network.load_state_dict(state["network"])
        loader.load_state_dict(state["loader"])
        step = state["step"]
    for _ in range(step // 10, EPOCHS):
        for data, labels in loader:
            optimizer.zero_grad()
            network(data, labels)["loss"].backward()
            optimizer.step()
            step += 1
            if step % EVERY == 0:
                torch.save({"network": network.state_dict(), "loader": loader.state_dict(), "step": step}, "new.bin")
                os.replace("new.bin", "last.pt")


def lightning() -> None:
    """Resume Lightning's Trainer with ckpt_path."""
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = Network()

        def training_step(self, batch: Any, place: int) -> torch.Tensor:
            return self.network(*batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 1e-6)

    save = ModelCheckpoint("saved", every_n_train_steps=EVERY, save_top_k=-1)
    trainer = L.Trainer(
        max_epochs=EPOCHS, callbacks=[save], logger=False, enable_progress_bar=False, enable_model_summary=False
    )
    loader = DataLoader(DATA, batch_size=10, shuffle=True)
    trainer.fit(Module(), loader, ckpt_path=resume[0] if resume else None)


def transformers() -> None:
    """Resume the Trainer of Transformers with resume_from_checkpoint."""
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        "out",
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=10,
        save_steps=EVERY,
        learning_rate=1e-6,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(Network(), arguments, train_dataset=Named())
    trainer.train(resume_from_checkpoint=resume[0] if resume else None)


def accelerate() -> None:
    """Follow Accelerate's documentation: save_state, load_state and skip_first_batches."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    network = Network()
    optimizer = torch.optim.SGD(network.parameters(), 1e-6)
    network, optimizer, loader = accelerator.prepare(network, optimizer, DataLoader(DATA, batch_size=10, shuffle=True))
    step = 0
    if resume:
        accelerator.load_state(resume[0])
        step = int(Path(resume[0]).name.removeprefix("checkpoint-"))
    first, skipped = divmod(step, 10)
    for epoch in range(first, EPOCHS):
        batches = accelerator.skip_first_batches(loader, skipped) if epoch == first and skipped else loader
        for data, labels in batches:
            optimizer.zero_grad()
            accelerator.backward(network(data, labels)["loss"])
            optimizer.step()
            step += 1
            if step % EVERY == 0:
                accelerator.save_state(f"checkpoint-{step}")


if __name__ == "__main__":
    {"stateful": stateful, "lightning": lightning, "transformers": transformers, "accelerate": accelerate}[way]()
