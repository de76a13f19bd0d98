"""Trains, saves every six steps and at SIGTERM, and resumes in one of several ways; `ours` also works under torchrun.

Under torchrun the processes do not wait for each other. Only the first process handles SIGTERM, and it is slow:
torchrun ends it as soon as another process was ended by a signal. After a resume, the other processes are late: they
read the checkpoint only after the first process has saved again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import SRSBatchSampler

parser = argparse.ArgumentParser()
parser.add_argument("way", choices=["epoch", "skip", "rng", "ours"])
parser.add_argument("--resume")
options = parser.parse_args()
rank = int(os.environ.get("RANK", "0"))
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
dataset = TensorDataset(torch.arange(100.0)[:, None], torch.arange(100) % 2)
ours = options.way == "ours"
sampler = SRSBatchSampler(dataset, 10) if ours else None
loader = DataLoader(dataset, batch_sampler=sampler) if ours else DataLoader(dataset, batch_size=10, shuffle=True)
model = torch.nn.Linear(1, 2)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
step, random_state = 0, torch.get_rng_state()


def save(*ignored: object) -> None:
    if ignored:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun sends it again
    if rank == 0:
        state = {"model": model.state_dict(), "step": step, "random_state": random_state}
        torch.save(state, "new.bin")
        os.replace("new.bin", "last.pt")
    if ignored:
        sys.exit(0)


if rank == 0:
    signal.signal(signal.SIGTERM, save)
if options.resume:
    before = os.stat("last.pt").st_mtime_ns
    torch.distributed.barrier() if "RANK" in os.environ else None
    while rank > 0 and os.stat("last.pt").st_mtime_ns == before:
        time.sleep(0.01)
    state = torch.load(options.resume, weights_only=True)
    model.load_state_dict(state["model"])
    step = state["step"]
    if options.way == "rng":
        torch.set_rng_state(state["random_state"])
    if sampler is not None:
        sampler.seek(step)
trained_before = step % 10
for _ in range(step // 10, 4):
    random_state = torch.get_rng_state()
    for place, (data, labels) in enumerate(loader):
        if options.way in ("skip", "rng") and place < trained_before:
            continue
        if rank == 0 and "RANK" in os.environ:
            time.sleep(0.05)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), labels).backward()
        optimizer.step()
        step += 1
        if step % 6 == 0:
            save()
    trained_before = 0
