"""Runs that take seconds, for the tests of the lab: configs, a network, a dataset, the command, and comparisons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from replenish.lab import RunConfig
from replenish.lab.data import Dataset

#: 23 steps per epoch, about 0.4 s. With reshuffling, the last batch of an epoch is smaller.
DIGITS = RunConfig(dataset="digits", model="wrn-10-1", pad=1, flip=False, epochs=2, drop_last=False)
#: For `Plain` on `blobs()`: 4 steps per epoch, about 0.01 s.
TINY = RunConfig(dataset="blobs", model="plain", pad=1, flip=False, epochs=3, batch_size=16, learning_rate=0.05)


class Plain(nn.Module):
    """A network without batch normalization, so that its output for a sample does not depend on other samples."""

    def __init__(self, width: int = 8, classes: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(36, width), nn.Linear(width, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.dropout(torch.tanh(self.hidden(images.flatten(1)))))


def dropping() -> nn.Module:
    """Return a network whose training depends on the state of torch's generator."""
    return Plain(dropout=0.3)


def blobs(train: int = 64, test: int = 21, *, seed: int = 0) -> Dataset:
    """Return 6 x 6 images of three classes. Each class is bright in two rows."""
    rng = np.random.default_rng(seed)
    splits = []
    for count in (train, test):
        labels = (np.arange(count) % 3).astype(np.int64)
        images = rng.integers(0, 120, (count, 6, 6, 1)).astype(np.uint8)
        for label in range(3):
            images[labels == label, 2 * label : 2 * label + 2] += np.uint8(100)
        splits += [images, labels]
    return Dataset(*splits, ("a", "b", "c"), "blobs")


def replenish(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "replenish", *arguments]


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl without the seconds, which differ between runs."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in found]


def only_run(runs: Path) -> Path:
    """Return the folder of the only run in a folder of runs."""
    (folder,) = runs.glob("*/seed*")
    return folder


def same(one: Any, two: Any) -> bool:
    """Return whether two nested structures of plain values and tensors are equal bit by bit."""
    if type(one) is not type(two):
        return False
    if isinstance(one, Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[name], two[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)
