"""torchdata: random histories of its own states, by batches and by indices, compared with one run."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata: pip install 'replenish[torchdata]'")

from integration_support import stream
from torchdata.stateful_dataloader import StatefulDataLoader
from ways import exact

from replenish.torch import SRSBatchSampler, SRSSampler


def make(kind: str, **options: Any) -> StatefulDataLoader:
    if kind == "batches":
        sampler: Any = {"batch_sampler": SRSBatchSampler(range(1000), 40, seed=3)}
    else:
        sampler = {"sampler": SRSSampler(range(1000), 40, seed=3), "batch_size": 40}
    return StatefulDataLoader(range(1000), collate_fn=list, **sampler, **options)


@pytest.mark.parametrize("kind", ["batches", "indices"])
@pytest.mark.parametrize("workers", [0, 2])
def test_histories(kind: str, workers: int) -> None:
    for seed in range(8 if workers else 100):
        draw = random.Random(seed)
        options = {"num_workers": workers, "snapshot_every_n_steps": draw.choice([1, 1, 3, 50])}
        looks = draw.random() < 0.3
        step, state, seen = 0, None, []
        for stop in sorted(draw.sample(range(1, 80), 3)):
            loader = make(kind, **options)
            if state is None and looks:
                next(iter(loader))
            if state is not None:
                loader.load_state_dict(state)
            while step < stop:
                for batch in loader:
                    seen.append(batch)
                    step += 1
                    if step == stop:
                        break
            state = loader.state_dict()
        ways = ["the loader's own state, any step", *(["a look at the data first"] if looks else [])]
        exact("torchdata", *ways, seen=seen, whole=stream(0, step), where=seed)
