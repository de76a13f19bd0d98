"""Real processes (gloo): ranks come from torch.distributed, and their shares make up the stream."""

from __future__ import annotations

import json
import multiprocessing
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from contracts import as_lists
from torch.utils.data import DataLoader, TensorDataset

from replenish import RandomReshuffling, SequencedReplacement
from replenish.orders.pool_search import LARGE
from replenish.torch import OrderBatchSampler, SRSBatchSampler, warm


def train(rank: int, world: int, folder: str, start: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    dataset = TensorDataset(torch.arange(103))
    sampler = SRSBatchSampler(dataset, 8, seed=4)
    assert (sampler.num_replicas, sampler.rank) == (world, rank)
    sampler.seek(start)
    seen = [batch.tolist() for (batch,) in DataLoader(dataset, batch_sampler=sampler)]
    Path(folder, f"{rank}.json").write_text(json.dumps(seen))
    dist.destroy_process_group()


@pytest.mark.slow
def test_ranks_come_from_torch_distributed(tmp_path: Path) -> None:
    multiprocessing.set_forkserver_preload([__name__])  # imports torch once, which takes seconds
    expected = as_lists(SequencedReplacement(103, 8, seed=4).batches(5, 13))
    mp.start_processes(train, args=(2, str(tmp_path), 5), nprocs=2, start_method="forkserver")
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [list(chain.from_iterable(step)) for step in zip(*shares, strict=True)] == expected


def warm_up(rank: int, world: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=world)
    sampler = SRSBatchSampler(range(LARGE), 65_536, seed=4)
    far = 40 * sampler.order.steps_per_epoch
    warm(sampler, far)
    pool = sampler.order.cursor()  # the warm cursor, which has already found the pool
    np.save(Path(folder, f"{rank}.npy"), pool._found[0])
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_find_a_far_pool_together(tmp_path: Path) -> None:
    mp.spawn(warm_up, args=(2, str(tmp_path)), nprocs=2)
    order = SequencedReplacement(LARGE, 65_536, seed=4)
    expected = order.cursor().positions_before(40 * order.steps_per_epoch)
    for rank in range(2):
        assert (np.load(tmp_path / f"{rank}.npy") == expected).all()


def test_only_orders_with_a_pool_are_warmed() -> None:
    with pytest.raises(TypeError, match="sampler should be one of SRS, or the order itself"):
        warm(OrderBatchSampler(RandomReshuffling(10, 2)), 3)
