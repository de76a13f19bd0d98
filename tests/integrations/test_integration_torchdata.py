"""torchdata: the golden vector through `StatefulSampler`, and the example."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata: pip install 'replenish[torchdata]'")

from integration_support import EXAMPLES, GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, check_log, run
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish.integrations.torchdata import StatefulSampler
from replenish.torch import SRSBatchSampler, SRSSampler


@pytest.mark.parametrize("num_workers", [0, 2])
def test_golden_vector(num_workers: int) -> None:
    for start, expected in [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]:
        for make, options in [
            (SRSBatchSampler, lambda sampler: {"batch_sampler": sampler}),
            (SRSSampler, lambda sampler: {"sampler": sampler, "batch_size": 4}),
        ]:
            sampler = make(range(10), 4, seed=3)
            sampler.seek(start)
            given = options(StatefulSampler(sampler))
            loader = StatefulDataLoader(range(10), num_workers=num_workers, collate_fn=list, **given)
            assert list(loader)[: len(expected)] == expected


def test_a_batch_that_is_no_step() -> None:
    loader = StatefulDataLoader(range(10), batch_size=3, sampler=StatefulSampler(SRSSampler(range(10), 4, seed=3)))
    next(iter(loader))
    with pytest.raises(
        ValueError, match="batch_size should be the sampler's share of a step, .* 3 of 4 samples of step 0"
    ):
        loader.state_dict()


@pytest.mark.slow
def test_example(tmp_path: Path) -> None:
    stop = 0
    for until in (7, 50, 53):
        run(EXAMPLES / "train_torchdata.py", tmp_path, "--until", until)
        check_log(tmp_path, stop, until)
        stop = until
