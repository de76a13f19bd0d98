"""A typical training with the Hugging Face Trainer that does not use replenish. Writes the samples of each step."""

import json
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments


class Numbers(Dataset):
    def __len__(self):
        return 101

    def __getitem__(self, index):
        return {"x": torch.full((4,), float(index)), "index": index}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.seen = []

    def forward(self, x, index=None, return_loss=True):
        self.seen.append(index.tolist())
        return {"loss": self.layer(x / 100).square().mean()}


if __name__ == "__main__":
    folder = sys.argv[1]
    model = Net()
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Numbers())
    trainer.train()
    Path(folder, f"rank{arguments.process_index}.json").write_text(json.dumps(model.seen))
