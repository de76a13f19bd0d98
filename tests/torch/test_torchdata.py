"""torchdata's StatefulDataLoader: its own state resumes the stream exactly."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest
import torch
from contracts import as_lists
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from replenish import SequencedReplacement
from replenish.torch import SRSBatchSampler

STEPS = 13


def stream(start: int, stop: int) -> list[list[int]]:
    return as_lists(SequencedReplacement(103, 8).batches(start, stop))


def loader(num_workers: int, **options: Any) -> StatefulDataLoader:
    dataset = TensorDataset(torch.arange(103))
    return StatefulDataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 8), num_workers=num_workers, **options)


def lists(batches: Any) -> list[list[int]]:
    return [batch.tolist() for (batch,) in batches]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("trained", [0, 1, 4, STEPS - 1, STEPS, STEPS + 1, STEPS + 6])
def test_resume(num_workers: int, every: int, trained: int) -> None:
    """At any step; at the end of an epoch, before its StopIteration, the pass after loading is empty."""
    first = loader(num_workers, snapshot_every_n_steps=every)
    seen = []
    if trained > STEPS:
        seen += lists(first)
    seen += lists(islice(iter(first), trained - len(seen)))
    state = first.state_dict()
    json.dumps(state["_index_sampler_state"] if num_workers == 0 else state["_snapshot"]["_main_snapshot"])

    resumed = loader(num_workers, snapshot_every_n_steps=every)
    resumed.load_state_dict(state)
    rest = lists(resumed)
    assert seen + rest == stream(0, STEPS if trained <= STEPS else 2 * STEPS)
    assert len(rest) == -trained % STEPS or trained == 0
    end = len(seen + rest)
    assert lists(resumed) == stream(end, end + STEPS)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_resume_after_a_finished_epoch_begins_the_next(num_workers: int) -> None:
    first = loader(num_workers)
    assert lists(first) == stream(0, STEPS)
    state = first.state_dict()
    resumed = loader(num_workers)
    resumed.load_state_dict(state)
    assert lists(resumed) == stream(STEPS, 2 * STEPS)
    assert lists(resumed) == stream(2 * STEPS, 3 * STEPS)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_asking_for_the_state_first_changes_nothing(num_workers: int) -> None:
    first = loader(num_workers)
    first.state_dict()
    assert lists(first) == stream(0, STEPS)
    assert lists(first) == stream(STEPS, 2 * STEPS)


def test_persistent_workers() -> None:
    first = loader(2, persistent_workers=True)
    seen = lists(first) + lists(islice(iter(first), 5))
    resumed = loader(2, persistent_workers=True)
    resumed.load_state_dict(first.state_dict())
    seen += lists(resumed)
    seen += lists(resumed)
    assert seen == stream(0, 3 * STEPS)
