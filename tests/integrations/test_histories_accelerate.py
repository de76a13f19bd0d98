"""Accelerate: random histories with prepared loaders and without, compared with one run; what it divides is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate", reason="needs accelerate: pip install 'replenish[accelerate]'")

from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.data_loader import prepare_data_loader
from accelerate.state import AcceleratorState, GradientState, PartialState
from contracts import as_lists
from integration_support import joined
from torch.utils.data import DataLoader
from ways import exact, refused

from replenish import SequencedReplacement
from replenish.integrations.accelerate import Progress
from replenish.torch import SRSBatchSampler, SRSSampler

STREAM = as_lists(SequencedReplacement(100, 10, seed=3).batches(0, 80))
DATA = range(100)


@pytest.fixture(autouse=True)
def _fresh_state() -> None:
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def make(kind: str, **options: int) -> tuple[Any, DataLoader[Any]]:
    if kind == "batches":
        sampler: Any = SRSBatchSampler(DATA, 10, seed=3, **options)
        return sampler, DataLoader(DATA, batch_sampler=sampler, collate_fn=list)
    sampler = SRSSampler(DATA, 10, seed=3, **options)
    return sampler, DataLoader(DATA, sampler=sampler, batch_size=sampler.share_size, collate_fn=list)


WAYS_TO_SAVE = {
    "loader not prepared, `Progress`": (False, True),
    "loader prepared on one process, `Progress`": (True, True),
    "loader prepared, `register_for_checkpointing(sampler)`": (True, False),
}


@pytest.mark.parametrize("name", WAYS_TO_SAVE)
@pytest.mark.parametrize("kind", ["batches", "indices"])
def test_histories(name: str, kind: str, tmp_path: Path) -> None:
    prepared, counts = WAYS_TO_SAVE[name]
    for seed in range(35):
        draw, step, seen = random.Random(seed), 0, []
        looks = draw.random() < 0.3
        for stop in sorted(draw.sample(range(1, 45), 3)):
            accelerator = Accelerator(cpu=True)
            sampler, loader = make(kind)
            progress = Progress(sampler)
            if prepared:
                loader = accelerator.prepare(loader)
            accelerator.register_for_checkpointing(progress if counts else sampler)
            if step:
                accelerator.load_state(str(tmp_path / str(seed)))
            if looks and step % 10 != 9:  # of a single batch, a prepared loader takes all, for it looks ahead
                next(iter(loader))
            while step < stop:
                for batch in loader:
                    seen.append(batch)
                    step += 1
                    progress.step = step
                    if step == stop:
                        break
            accelerator.save_state(str(tmp_path / str(seed)))
            _fresh = [state._reset_state() for state in (AcceleratorState, GradientState, PartialState)]
        exact("Accelerate", name, seen=seen, whole=STREAM[:step], where=seed)


@pytest.mark.parametrize("kind", ["batches", "indices"])
def test_skip_first_batches(kind: str) -> None:
    for seed in range(35):
        draw = random.Random(seed)
        accelerator = Accelerator(cpu=True)
        sampler, loader = make(kind)
        loader = accelerator.prepare(loader)
        step, seen = draw.randint(0, 30), []
        first = step
        for epoch in range(step // 10, 4):
            part = accelerator.skip_first_batches(loader, step % 10) if step % 10 else loader
            sampler.set_epoch(epoch)
            for batch in part:
                seen.append(batch)
                step += 1
                assert sampler.state_dict()["step"] == step
        exact("Accelerate", "`skip_first_batches`", seen=seen, whole=STREAM[first:step], where=seed)


def test_what_was_restored_is_not_skipped_again() -> None:
    """As in a script that skips by itself, to which the sampler was registered too."""
    for kind in ("batches", "indices"):
        accelerator = Accelerator(cpu=True)
        sampler, loader = make(kind)
        loader = accelerator.prepare(loader)
        sampler.load_state_dict(make(kind)[0].state_dict(step=14))
        way = "`skip_first_batches` of a sampler that a state has put there"
        with refused("Accelerate", way, match="skip_first_batches should be 0 for a sampler .* at step 14"):
            next(iter(accelerator.skip_first_batches(loader, 4)))
        assert next(iter(loader)) == STREAM[14]


@pytest.mark.parametrize("kind", ["batches", "indices"])
def test_prepared_on_several_processes(kind: str) -> None:
    """As on n processes, whose shares are prepared one after the other; other scripts run them at once."""

    def rank(number: int, of: int, step: int) -> Any:
        sampler, loader = make(kind, num_replicas=1, rank=0)
        sampler.load_state_dict(make(kind)[0].state_dict(step=step))
        return prepare_data_loader(loader, num_processes=of, process_index=number, split_batches=True)

    for seed in range(35):
        draw = random.Random(seed)
        step, of = draw.randint(0, 50), draw.choice([2, 5])
        loaders = [rank(number, of, step) for number in range(of)]
        shares = [[batch for _ in range(2) for batch in loader] for loader in loaders]
        whole = STREAM[step : (step // 10 + 2) * 10]
        exact("Accelerate", "prepared on n processes, `split_batches=True`", seen=joined(shares), whole=whole)


def test_what_it_would_divide_once_more_is_refused() -> None:
    undivided = "prepared on n processes, without `split_batches`"
    divided = "prepared, and a sampler that knows its rank"
    for kind in ("batches", "indices"):
        options = {"num_processes": 2, "process_index": 0}
        _, loader = make(kind)
        with refused("Accelerate", undivided, match="split_batches should be True in Accelerate's DataLoaderConfig"):
            next(iter(prepare_data_loader(loader, **options)))
        _, loader = make(kind, num_replicas=2, rank=0)
        for split in (False, True):
            if kind == "indices" and split:
                continue  # Accelerate itself refuses to split a batch of 5
            with refused("Accelerate", divided, match="num_replicas should be 1, with rank=0, for a loader that Acc"):
                next(iter(prepare_data_loader(loader, **options, split_batches=split)))


def test_dispatched_batches_are_refused() -> None:
    config = DataLoaderConfiguration(dispatch_batches=True, split_batches=True)
    loader = Accelerator(cpu=True, dataloader_config=config).prepare(make("batches")[1])
    with refused("Accelerate", "`dispatch_batches=True`", match="dispatch_batches should be False"):
        next(iter(loader))
