"""Which process of how many this is, as torch.distributed or the user says."""

from __future__ import annotations

import torch.distributed

from replenish.sharding import check_replicas


def current_replicas(num_replicas: int | None, rank: int | None) -> tuple[int, int]:
    """Return (num_replicas, rank), with what torch.distributed knows where it is None, checked."""
    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if num_replicas is not None and rank is None and not running and num_replicas != 1:
        raise ValueError(
            f"rank should be given with num_replicas={num_replicas!r}, since torch.distributed is not initialised "
            f"and every process would take the share of rank 0, but got rank=None"
        )
    if num_replicas is None:
        num_replicas = torch.distributed.get_world_size() if running else 1
    if rank is None:
        rank = torch.distributed.get_rank() if running else 0
    return check_replicas(num_replicas, rank)
