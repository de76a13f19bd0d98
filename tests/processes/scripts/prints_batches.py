"""Draws from the named loader and prints every batch. With `kill`, it kills itself 2 s after 30 batches."""

from __future__ import annotations

import os
import signal
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler

kind, *kill = sys.argv[1:]
dataset = TensorDataset(torch.arange(100))
loader = {
    "shuffled": lambda: DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1),
    "plain": lambda: DataLoader(dataset, batch_size=8, shuffle=True),
    "srs": lambda: DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 8, seed=5)),
}[kind]()
done = 0
for _ in range(3):
    for step, (batch,) in enumerate(loader):
        print(batch.tolist(), flush=True)
        done += 1
        if kill and done == 30:
            time.sleep(2)
        if kill and done == 31:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 9 and kind == "shuffled":  # left early
            break
