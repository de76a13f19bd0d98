"""Finds the pool at a far step, when it is very large, with all processes of a job."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from replenish.orders.pool_search import Hit, SearchGroup
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.sequences import IntegerArray
from replenish.torch.step_sampler import StepSampler

# How many slots the processes exchange at a time. More would take more memory.
SLOTS_AT_ONCE = 2**22


def warm(sampler: StepSampler[Any] | SequencedReplacement, step: int, group: Any = None) -> None:
    """Find the pool at a far step; each process of a group does a share of the work.

    Call it in all of them before the first batch of a resumed run. Without it, each process finds the whole pool by
    itself, which takes minutes for 10^9 samples. The pool, and so the batches, are the same either way.

    Args:
        sampler: A sampler of SRS, or the order itself, with equal arguments in all processes.
        step: The step at which the run resumes.
        group: The processes; None means all of them.

    Raises:
        TypeError: The order is not SRS. Other orders do not need this.
    """
    order = sampler if isinstance(sampler, SequencedReplacement) else getattr(sampler, "order", None)
    if not isinstance(order, SequencedReplacement):
        raise TypeError(f"sampler should be one of SRS, or the order itself, but got a {type(sampler).__name__}")
    order.warm(step, ProcessGroup(group))


class ProcessGroup(SearchGroup):
    """The processes of a group of torch.distributed."""

    def __init__(self, group: Any = None) -> None:
        self._group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self._device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"

    def join(self, positions: IntegerArray) -> None:
        """Exchange the positions that the processes have found, `SLOTS_AT_ONCE` at a time."""
        for start in range(0, len(positions), SLOTS_AT_ONCE):
            part = positions[start : start + SLOTS_AT_ONCE]
            has_it = self._largest(np.where(part >= 0, self.rank, -1))
            part[:] = self._largest(np.where(has_it == self.rank, part, -1))

    def gather(self, hits: list[Hit]) -> list[Hit]:
        """Return the hits of all processes."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, hits, self._group)
        return [hit for each in found for hit in each]

    def _largest(self, values: IntegerArray) -> IntegerArray:
        tensor = torch.from_numpy(values).to(self._device)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, self._group)
        return tensor.cpu().numpy()
