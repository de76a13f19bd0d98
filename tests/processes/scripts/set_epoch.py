"""Calls `set_epoch` at the end of each epoch, with 0 or with the next epoch."""

from __future__ import annotations

import sys

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(range(50), num_replicas=2, rank=0)
loader = DataLoader(range(50), batch_size=5, sampler=sampler)
for epoch in range(3):
    for _ in loader:
        pass
    sampler.set_epoch(0 if sys.argv[1] == "0" else epoch + 1)
