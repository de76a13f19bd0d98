"""The Hugging Face Trainer: its own step number is the position, its own checkpoints resume the stream."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs transformers: pip install 'replenish[transformers]'")

import torch
from integration_support import (
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    golden_order,
    joined,
    stream,
)
from torch import nn
from torch.utils.data import Dataset, IterableDataset
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from replenish import Order, RandomReshuffling, SequencedReplacement
from replenish.integrations.transformers import MicroBatches, SRSTrainer, SRSTrainerMixin


class Rows(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, size: int = 1000) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"index": torch.tensor(index), "labels": torch.tensor(0)}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, index: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        self.seen.append(index.tolist())
        return {"loss": self.weight + labels.sum()}


def trainer(folder: Path, *, cls: type = SRSTrainer, data: Any = None, **options: Any) -> Any:
    defaults = {
        "per_device_train_batch_size": 40, "data_seed": 3, "max_steps": 60, "save_strategy": "no", "use_cpu": True,
        "report_to": "none", "disable_tqdm": True, "dataloader_pin_memory": False, "logging_strategy": "no",
    }  # fmt: skip
    arguments = TrainingArguments(output_dir=str(folder), **{**defaults, **options})
    return cls(model=Model(), args=arguments, train_dataset=Rows() if data is None else data)


def test_golden_vector(tmp_path: Path) -> None:
    options = {"per_device_train_batch_size": 4, "data": Rows(10)}
    run = trainer(tmp_path, max_steps=3, **options)
    run.train()
    assert run.model.seen == GOLDEN_FIRST

    # A checkpoint that says it is at step 10**6, which is the second of its epoch of 3.
    run.save_model(str(tmp_path / "far"))
    state = TrainerState(global_step=MILLION, train_batch_size=4)
    state.save_to_json(str(tmp_path / "far" / "trainer_state.json"))
    far = trainer(tmp_path, max_steps=MILLION + 1, **options)
    far.train(resume_from_checkpoint=str(tmp_path / "far"))
    assert far.model.seen == [GOLDEN_MILLIONTH]


@pytest.mark.parametrize(("num_workers", "stopped"), [(0, 7), (2, 25), (0, 31)])
def test_resume_at_any_step(num_workers: int, stopped: int, tmp_path: Path) -> None:
    options = {"save_strategy": "steps", "save_steps": stopped, "dataloader_num_workers": num_workers}
    first = trainer(tmp_path, max_steps=stopped, **options)
    first.train()
    assert first.model.seen == stream(0, stopped)
    second = trainer(tmp_path, **options)
    second.train(resume_from_checkpoint=True)
    assert second.model.seen == stream(stopped, 60)
    saved = json.loads((tmp_path / f"checkpoint-{stopped}" / "replenish.json").read_text())
    assert saved["step"] == stopped
    assert saved["batch_size"] == 40


@pytest.mark.parametrize("parts", [2, 4])
def test_gradient_accumulation_takes_parts_of_the_same_batches(parts: int, tmp_path: Path) -> None:
    options = {"gradient_accumulation_steps": parts, "per_device_train_batch_size": 40 // parts}
    run = trainer(tmp_path, save_strategy="steps", save_steps=31, max_steps=31, **options)
    run.train()
    again = trainer(tmp_path)  # resumed without accumulation
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-31"))
    joined = [list(chain(*run.model.seen[first : first + parts])) for first in range(0, 31 * parts, parts)]
    assert joined + again.model.seen == stream(0, 60)


def test_an_epoch_cut_short_by_a_callback(tmp_path: Path) -> None:
    class Cut(TrainerCallback):
        def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            control.should_epoch_stop = state.global_step in (4, 40)

    run = trainer(tmp_path, max_steps=90)
    run.add_callback(Cut())
    run.train()
    assert run.model.seen == stream(0, len(run.model.seen))
    assert len(run.model.seen) == run.state.global_step


def test_a_checkpoint_of_another_stream_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path, save_strategy="steps", save_steps=5, max_steps=5).train()
    for options, message in [
        ({"data_seed": 4}, "seed is 3 in the state but 4 here"),
        ({"per_device_train_batch_size": 20}, "batch_size is 40 in the state but 20 here"),
    ]:
        with pytest.raises(ValueError, match=message):
            trainer(tmp_path, **options).train(resume_from_checkpoint=True)


def test_another_order(tmp_path: Path) -> None:
    class Reshuffled(SRSTrainerMixin, Trainer):
        def make_order(self, num_samples: int, batch_size: int) -> Order:
            return RandomReshuffling(num_samples, batch_size, seed=self.args.seed)

    run = trainer(tmp_path, cls=Reshuffled, max_steps=30, seed=8)
    run.train()
    assert run.model.seen == [batch.tolist() for batch in RandomReshuffling(1000, 40, seed=8).batches(0, 30)]


def test_what_cannot_work_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ignore_data_skip should be False"):
        trainer(tmp_path, ignore_data_skip=True)

    class Stream(IterableDataset):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(TypeError, match="train_dataset should have a length, but got a Stream"):
        trainer(tmp_path, data=Stream()).get_train_dataloader()


def test_shares_of_processes() -> None:
    ranks = [MicroBatches(golden_order(), 1, 2, rank, lambda: 0) for rank in range(2)]
    assert joined(ranks) == GOLDEN_FIRST
    parts = list(MicroBatches(SequencedReplacement(1000, 40, seed=3), 2, 2, 1, lambda: 0))
    assert parts[:2] == [stream(0, 1)[0][20:30], stream(0, 1)[0][30:40]]
    assert len(parts) == 50
