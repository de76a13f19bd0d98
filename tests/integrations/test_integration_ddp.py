"""DistributedDataParallel under torchrun: one stream on any number of processes, through kills."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration_support import (
    EXAMPLES,
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    check_log,
    environment,
    free_port,
    golden_order,
    joined,
    run,
    stream,
    take_log,
)
from torch.utils.data import DataLoader

from replenish.torch import OrderBatchSampler, SRSBatchSampler, SRSSampler

EXAMPLE = EXAMPLES / "train_ddp.py"


@pytest.mark.parametrize("world", [1, 2, 4])
def test_golden_vector(world: int) -> None:
    data = range(10)
    for make in (
        lambda rank: SRSBatchSampler(data, 4, seed=3, num_replicas=world, rank=rank),
        lambda rank: OrderBatchSampler(golden_order(), num_replicas=world, rank=rank),
        lambda rank: SRSSampler(data, 4, seed=3, num_replicas=world, rank=rank),
    ):
        samplers = [make(rank) for rank in range(world)]

        def batches(samplers: list = samplers) -> list[list[int]]:
            options = [
                {"batch_sampler": sampler}
                if isinstance(sampler, OrderBatchSampler)
                else {"sampler": sampler, "batch_size": sampler.share_size}
                for sampler in samplers
            ]
            loaders = [DataLoader(data, collate_fn=list, **each) for each in options]
            return joined(loaders)

        assert batches() == GOLDEN_FIRST
        for sampler in samplers:
            sampler.seek(MILLION)
        assert batches()[0] == GOLDEN_MILLIONTH


@pytest.mark.slow
def test_torchrun_on_2_then_1_2_and_4_processes(tmp_path: Path) -> None:
    """To the middle of an epoch, over its end, to its end."""
    stop = 0
    for processes, until in [(2, 33), (1, 38), (2, 50), (4, 58)]:
        run(EXAMPLE, tmp_path, "--until", until, processes=processes)
        check_log(tmp_path, stop, until)
        stop = until


class Launch:
    """The ranks of one launch, as real processes that can be killed without warning."""

    def __init__(self, folder: Path, world: int, workers: int) -> None:
        port = str(free_port())
        command = [sys.executable, str(EXAMPLE), str(folder), "--until=1000000", f"--workers={workers}"]
        self.ranks = [
            subprocess.Popen(
                command,
                env=environment(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for rank in range(world)
        ]

    def kill_after(self, folder: Path, steps: int) -> None:
        file, limit = folder / "rank0.jsonl", time.monotonic() + 300
        while not file.exists() or file.read_bytes().count(b"\n") < steps:
            assert time.monotonic() < limit
            assert all(rank.poll() is None for rank in self.ranks), "a rank died by itself"
            time.sleep(0.01)
        for rank in random.sample(self.ranks, len(self.ranks)):
            rank.send_signal(signal.SIGKILL)
        for rank in self.ranks:
            rank.wait()


@pytest.mark.slow
def test_ten_kills_and_resumes_at_other_world_sizes(tmp_path: Path) -> None:
    """Killed without warning at random points; the next launch has another number of processes and of workers."""
    choose = random.Random(5)
    trained, world = 0, 1
    for _ in range(10):
        world = choose.choice([size for size in (1, 2, 4) if size != world])
        launch = Launch(tmp_path, world, workers=choose.choice([0, 1, 2]))
        launch.kill_after(tmp_path, choose.randrange(7, 60))
        log = take_log(tmp_path)
        steps = list(log)
        # It goes on at the last checkpoint: at most some steps are trained again, and none is left out.
        assert steps == list(range(steps[0], steps[-1] + 1))
        assert 0 <= steps[0] <= trained
        assert list(log.values()) == stream(steps[0], steps[-1] + 1)
        # A rank may be a step ahead of what all of them wrote, and a checkpoint may hold that step.
        assert steps[-1] + 1 >= trained - 5
        trained = steps[-1] + 2
    assert trained > 70
