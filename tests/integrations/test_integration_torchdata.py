"""torchdata: the loader's own state over SRS index by index; tests/torch/test_torchdata.py has the batch sampler."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata: pip install 'replenish[torchdata]'")

from integration_support import EXAMPLES, GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, check_log, run, stream
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish.torch import SRSBatchSampler, SRSSampler


def lists(batches) -> list[list[int]]:
    return [list(batch) for batch in batches]


def by_index(num_workers: int, every: int = 1) -> StatefulDataLoader:
    sampler = SRSSampler(range(1000), 40, seed=3)
    options = {"num_workers": num_workers, "snapshot_every_n_steps": every, "collate_fn": list}
    return StatefulDataLoader(range(1000), batch_size=40, sampler=sampler, **options)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("trained", [0, 7, 24, 25, 26, 40])
def test_index_by_index(num_workers: int, every: int, trained: int) -> None:
    first = by_index(num_workers, every)
    seen = lists(first) if trained > 25 else []
    seen += lists(islice(iter(first), trained - len(seen)))
    state = first.state_dict()
    resumed = by_index(num_workers, every)
    resumed.load_state_dict(state)
    rest = lists(resumed)
    assert seen + rest == stream(0, 25 if trained <= 25 else 50)
    end = len(seen + rest)
    assert lists(resumed) == stream(end, end + 25)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_golden_vector(num_workers: int) -> None:
    for start, expected in [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]:
        for make, options in [
            (SRSBatchSampler, lambda sampler: {"batch_sampler": sampler}),
            (SRSSampler, lambda sampler: {"sampler": sampler, "batch_size": 4}),
        ]:
            sampler = make(range(10), 4, seed=3)
            sampler.seek(start)
            loader = StatefulDataLoader(range(10), num_workers=num_workers, collate_fn=list, **options(sampler))
            assert lists(loader)[: len(expected)] == expected


@pytest.mark.slow
def test_example(tmp_path: Path) -> None:
    stop = 0
    for until in (7, 50, 53):
        run(EXAMPLES / "train_torchdata.py", tmp_path, "--until", until)
        check_log(tmp_path, stop, until)
        stop = until
