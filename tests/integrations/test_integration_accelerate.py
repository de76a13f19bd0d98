"""Hugging Face Accelerate: the golden vector through the adapter's `prepare`, and the example on 1 and 2 processes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="needs accelerate: pip install 'replenish[accelerate]'")

from accelerate import Accelerator
from integration_support import EXAMPLES, GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, check_log, joined, run
from torch.utils.data import DataLoader

from replenish.integrations.accelerate import prepare
from replenish.torch import SRSBatchSampler


def test_golden_vector_on_two_processes() -> None:
    for start, expected in [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]:
        shares = []
        for rank in range(2):
            sampler = SRSBatchSampler(range(10), 4, seed=3, num_replicas=2, rank=rank)
            loader = DataLoader(range(10), batch_sampler=sampler, collate_fn=list)
            prepared, progress = prepare(Accelerator(cpu=True), loader)
            progress.load_state_dict(sampler.state_dict(start))
            shares.append(list(prepared))
        assert joined(shares)[: len(expected)] == expected


@pytest.mark.slow
def test_example_on_1_and_2_processes(tmp_path: Path) -> None:
    stop = 0
    for processes, until in [(1, 7), (2, 33), (None, 60)]:
        run(EXAMPLES / "train_accelerate.py", tmp_path, "--until", until, processes=processes)
        check_log(tmp_path, stop, until)
        stop = until
