"""SRS with the Hugging Face Trainer: the Trainer's own checkpoints resume the stream.

    python train_transformers.py run --until 30
    torchrun --nproc-per-node 2 train_transformers.py run --until 60    # resumes at step 30

The batch of a step is 40 on any number of processes. Each rank writes the samples of each step to
`run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import TrainingArguments

from replenish.integrations.transformers import SRSTrainer


class Sums(Dataset[dict[str, torch.Tensor]]):
    """Rows of eight numbers, and their sums."""

    def __init__(self) -> None:
        self.features = torch.randn(1000, 8, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.features[index]
        return {"index": torch.tensor(index), "features": row, "labels": row.sum().unsqueeze(0)}


class Model(nn.Module):
    """A linear map that writes the samples of each step to a file."""

    def __init__(self, trainer_step: Any, folder: Path, rank: int) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)
        self.step, self.file = trainer_step, folder / f"rank{rank}.jsonl"

    def forward(self, index: torch.Tensor, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        with open(self.file, "a") as log:
            print(json.dumps([self.step(), index.tolist()]), file=log)
        return {"loss": nn.functional.mse_loss(self.layer(features), labels)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--accumulate", type=int, default=1, help="forward passes of an optimizer step")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))

    arguments = TrainingArguments(
        output_dir=str(options.folder / "checkpoints"),
        # The batch of an optimizer step is the product of these two and the number of processes.
        per_device_train_batch_size=40 // world // options.accumulate,
        gradient_accumulation_steps=options.accumulate,
        max_steps=options.until,
        data_seed=3,  # the seed of the stream
        learning_rate=0.01,
        lr_scheduler_type="constant",
        save_steps=options.until,
        use_cpu=True,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=False,
        report_to="none",
        disable_tqdm=True,
    )
    model = Model(lambda: trainer.state.global_step, options.folder, rank)
    trainer = SRSTrainer(model=model, args=arguments, train_dataset=Sums())
    trainer.train(resume_from_checkpoint=any(options.folder.glob("checkpoints/checkpoint-*")))
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # until rank 0 has written the checkpoint
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
    gc.collect()  # frees the process group, whose threads can abort a process at its exit (pytorch#179291)
