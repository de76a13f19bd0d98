"""Hugging Face Accelerate: the loader that is not prepared, and the one prepared with split_batches=True."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="needs accelerate: pip install 'replenish[accelerate]'")

from accelerate import Accelerator, DataLoaderConfiguration
from accelerate.data_loader import prepare_data_loader
from accelerate.state import AcceleratorState, GradientState, PartialState
from integration_support import (
    EXAMPLES,
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    SCRIPTS,
    check_log,
    joined,
    run,
    stream,
)
from torch import nn, optim
from torch.utils.data import DataLoader

from replenish.integrations.accelerate import Progress
from replenish.torch import SRSBatchSampler


@pytest.fixture(autouse=True)
def _fresh_state() -> None:
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


def sampler(**options: int) -> SRSBatchSampler:
    return SRSBatchSampler(range(1000), 40, seed=3, **options)


def loader(batch_sampler: SRSBatchSampler, **options: int) -> DataLoader:
    return DataLoader(range(1000), batch_sampler=batch_sampler, collate_fn=list, **options)


def test_golden_vector_on_two_processes() -> None:
    for start, expected in [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]:
        shares = []
        for rank in range(2):
            whole = SRSBatchSampler(range(10), 4, seed=3)
            prepared = prepare_data_loader(
                DataLoader(range(10), batch_sampler=whole, collate_fn=list),
                num_processes=2,
                process_index=rank,
                split_batches=True,
            )
            whole.seek(start)
            shares.append(list(prepared))
        assert joined(shares)[: len(expected)] == expected


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("trained", [0, 7, 25, 31])
def test_save_state_and_load_state(num_workers: int, trained: int, tmp_path: Path) -> None:
    def start() -> tuple[Accelerator, Progress]:
        accelerator = Accelerator(cpu=True)
        progress = Progress(sampler())
        accelerator.prepare(model := nn.Linear(1, 1), optim.SGD(model.parameters(), lr=0.1))
        accelerator.register_for_checkpointing(progress)
        return accelerator, progress

    accelerator, progress = start()
    batches, seen = loader(progress.sampler, num_workers=num_workers), []
    while progress.step < trained:
        for batch in batches:
            seen.append(batch)
            progress.step += 1
            if progress.step == trained:
                break
    accelerator.save_state(str(tmp_path))

    _fresh = start()
    _fresh[0].load_state(str(tmp_path))
    assert _fresh[1].step == trained
    seen += list(loader(_fresh[1].sampler, num_workers=num_workers))
    assert seen == stream(0, len(seen))
    assert len(seen) == (trained // 25 + 1) * 25


@pytest.mark.parametrize("prepared", [False, True])
def test_skip_first_batches(prepared: bool) -> None:
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
    own = sampler()
    batches = accelerator.prepare(loader(own)) if prepared else loader(own)
    own.set_epoch(3)
    assert list(accelerator.skip_first_batches(batches, 9)) == stream(84, 100)


def test_prepared_epochs_follow_each_other() -> None:
    batches = Accelerator(cpu=True).prepare(loader(sampler()))
    assert list(batches) + list(batches) == stream(0, 50)


def test_stateful_loader_prepared_on_one_process(tmp_path: Path) -> None:
    pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")

    def start() -> tuple[Accelerator, DataLoader]:
        config = DataLoaderConfiguration(use_stateful_dataloader=True)
        accelerator = Accelerator(cpu=True, dataloader_config=config)
        return accelerator, accelerator.prepare(loader(sampler()))

    accelerator, batches = start()
    seen = list(batches) + list(islice(batches, 6))
    accelerator.save_state(str(tmp_path))
    _, resumed = fresh = start()
    fresh[0].load_state(str(tmp_path))
    assert seen + list(resumed) == stream(0, 50)


def test_what_cannot_work_a_stateful_loader_prepared_on_two_processes() -> None:
    """Accelerate's wrapper of the sampler has no state, so the loader replays from the first epoch."""

    def start() -> DataLoader:
        options = {"num_processes": 2, "process_index": 0, "split_batches": True, "use_stateful_dataloader": True}
        return prepare_data_loader(loader(sampler()), **options)

    share = [batch[:20] for batch in stream(0, 50)]
    for epochs in (0, 1):
        first, resumed = start(), start()
        seen = [batch for _ in range(epochs) for batch in first] + list(islice(first, 6))
        resumed.load_state_dict(first.state_dict())
        assert (seen + list(resumed) == share[: 25 * (epochs + 1)]) is (epochs == 0)


@pytest.mark.slow
def test_example_on_1_and_2_processes(tmp_path: Path) -> None:
    stop = 0
    for processes, until in [(1, 7), (2, 33), (None, 60)]:
        run(EXAMPLES / "train_accelerate.py", tmp_path, "--until", until, processes=processes)
        check_log(tmp_path, stop, until)
        stop = until


@pytest.mark.slow
def test_prepared_with_split_batches_on_1_and_2_processes(tmp_path: Path) -> None:
    stop = 0
    for processes, until in [(None, 31), (2, 56)]:
        run(SCRIPTS / "accelerate_prepared.py", tmp_path, "--trained", stop, "--until", until, processes=processes)
        check_log(tmp_path, stop, until)
        stop = until
