"""SRS with timm's own loader, network and optimizer: one line changes the order.

    python train_timm.py run --until 30
    python train_timm.py run --until 60    # continues at step 30

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import timm
import timm.data
import timm.optim
import torch
from PIL import Image

from replenish.torch import reorder


class Images(torch.utils.data.Dataset):
    """A thousand noisy images with their indices as targets; timm sets the transform."""

    transform = None

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = Image.fromarray(np.random.default_rng(index).integers(0, 256, (32, 32, 3), dtype=np.uint8))
        return self.transform(image), index


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.pt"

    torch.manual_seed(0)
    device = torch.device("cpu")
    loader = timm.data.create_loader(Images(), (3, 32, 32), 40, is_training=True, num_workers=2, device=device)
    loader = reorder(loader, order="srs", seed=3)
    model = timm.create_model("test_resnet", num_classes=10)
    optimizer = timm.optim.create_optimizer_v2(model, opt="sgd", lr=0.01, momentum=0.9)
    step = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.sampler.load_state_dict(saved["sampler"])
        step = saved["sampler"]["step"]

    with open(options.folder / "rank0.jsonl", "a") as log:
        while step < options.until:
            for inputs, numbers in loader:  # the rest of an epoch
                loss = torch.nn.functional.cross_entropy(model(inputs), numbers % 10)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(json.dumps([step, numbers.tolist()]), file=log)
                step += 1
                if step == options.until:
                    break
    # timm's PrefetchLoader is a batch ahead of the training; the step is the number of batches trained.
    position = loader.sampler.state_dict(step)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "sampler": position}, checkpoint)


if __name__ == "__main__":
    main()
