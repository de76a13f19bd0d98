"""The Hugging Face Trainer: random histories of checkpoints, accumulation and epochs, compared with one run."""

from __future__ import annotations

import random
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs transformers: pip install 'replenish[transformers]'")

import torch
from contracts import as_lists
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers import __version__ as transformers_version
from ways import exact, refused

from replenish import SequencedReplacement
from replenish.integrations.transformers import SRSTrainer
from replenish.torch import SRSBatchSampler, SRSSampler

STREAM = as_lists(SequencedReplacement(100, 12, seed=3).batches(0, 80))  # an epoch has 9 steps


class Rows(Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"index": torch.tensor(index), "labels": torch.tensor(0)}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, index: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.training:
            self.seen.append(index.tolist())
        return {"loss": self.weight + labels.sum()}


def train(
    folder: Path, resume: Any, kind: type[Trainer] = SRSTrainer, callbacks: Any = None, **options: Any
) -> list[list[int]]:
    arguments = TrainingArguments(
        output_dir=str(folder), data_seed=3, use_cpu=True, report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, logging_strategy="no", **options,
    )  # fmt: skip
    trainer = kind(model=Model(), args=arguments, train_dataset=Rows(), eval_dataset=Rows(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume)
    parts = options["gradient_accumulation_steps"]
    seen = trainer.model.seen
    return [list(chain(*seen[first : first + parts])) for first in range(0, len(seen), parts)]


def options_for(draw: random.Random) -> dict[str, Any]:
    parts = draw.choice([1, 1, 2, 3, 4])
    return {"gradient_accumulation_steps": parts, "per_device_train_batch_size": 12 // parts}


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_histories(block: int, tmp_path: Path) -> None:
    """Killed after any of its checkpoints; gone on with another accumulation, by steps or by epochs."""
    ways = ("`max_steps`, `num_train_epochs`", "gradient accumulation")
    for seed in range(50 * block, 50 * block + 50):
        draw, folder = random.Random(seed), tmp_path / str(seed)
        ends = draw.choice([{"max_steps": draw.randint(3, 24)}, {"num_train_epochs": draw.randint(1, 2)}])
        saves = draw.choice([{"save_strategy": "epoch"}, {"save_strategy": "steps", "save_steps": draw.randint(2, 7)}])
        evaluates = {"eval_strategy": "steps", "eval_steps": 4} if draw.random() < 0.3 else {}
        whole = train(folder, None, **ends, **saves, **evaluates, **options_for(draw))
        assert whole == STREAM[: len(whole)], seed
        saved = sorted(int(each.name.partition("-")[2]) for each in folder.glob("checkpoint-*"))
        saved = [step for step in saved if step < len(whole)]  # from its last one, the Trainer trains a step too many
        for step in draw.sample(saved, min(1 + (seed % 4 == 0), len(saved))):
            shutil.copytree(folder / f"checkpoint-{step}", resumed := tmp_path / f"{seed}-{step}")
            rest = train(folder, str(resumed), **ends, save_strategy="no", **evaluates, **options_for(draw))
            exact("Hugging Face Trainer", *ways, seen=rest, whole=whole[step:], where=(seed, step))


def test_workers(tmp_path: Path) -> None:
    options = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 6, "dataloader_num_workers": 2}
    assert train(tmp_path, None, max_steps=13, save_steps=13, **options) == STREAM[:13]
    rest = train(tmp_path, True, max_steps=24, save_strategy="no", **options)
    exact("Hugging Face Trainer", "workers", seen=rest, whole=STREAM[13:24])


class WithASampler(Trainer):
    def _get_train_sampler(self, *_: Any) -> SRSSampler:
        return SRSSampler(self.train_dataset, 12, seed=3)


class WithALoader(Trainer):
    def get_train_dataloader(self) -> DataLoader[Any]:
        sampler = SRSBatchSampler(self.train_dataset, 12, seed=3)
        return DataLoader(self.train_dataset, batch_sampler=sampler, collate_fn=self.data_collator)


@pytest.mark.parametrize("kind", [WithASampler, WithALoader])
def test_a_loader_of_ones_own(kind: type[Trainer], tmp_path: Path) -> None:
    """The Trainer sets the epoch and skips what was trained of it, whoever made the loader."""
    if kind is WithALoader and int(transformers_version.split(".")[0]) < 5:
        pytest.skip("before version 5 the Trainer sets the epoch of prepared loaders alone")
    way = "a loader of one's own with `SRSBatchSampler` or `SRSSampler`"
    options = {"gradient_accumulation_steps": 1, "per_device_train_batch_size": 12, "max_steps": 22}
    assert train(tmp_path, None, kind, save_steps=5, **options) == STREAM[:22]
    for step in (5, 10, 20):
        resumed = str(tmp_path / f"checkpoint-{step}")
        rest = train(tmp_path, resumed, kind, save_strategy="no", **options)
        exact("Hugging Face Trainer", way, seen=rest, whole=STREAM[step:22], where=step)


def test_a_loader_of_which_the_trainer_says_nothing(tmp_path: Path) -> None:
    options = {"gradient_accumulation_steps": 1, "per_device_train_batch_size": 12, "max_steps": 22}
    assert train(tmp_path, None, WithALoader, save_steps=9, **options) == STREAM[:22]
    message = r"loader should be prepared, .* goes on with epoch 1, but the stream would begin epoch 0"
    with refused("Hugging Face Trainer", "the same, not prepared, at an epoch's end", match=message):
        train(tmp_path, str(tmp_path / "checkpoint-9"), WithALoader, save_strategy="no", **options)


def test_an_epoch_that_a_callback_cut_short(tmp_path: Path) -> None:
    """The Trainer takes its steps for those of whole epochs; `SRSTrainer` goes by the steps alone."""

    class Cut(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_epoch_stop = state.global_step == 13

    options = {"gradient_accumulation_steps": 1, "per_device_train_batch_size": 12, "max_steps": 22}
    seen = train(tmp_path, None, WithASampler, callbacks=[Cut()], save_steps=15, **options)
    assert seen == STREAM[:13] + STREAM[18:27]
    message = "epochs should not be cut short .* would go on with epoch 1, but it was in epoch 2"
    with refused("Hugging Face Trainer", "the same, after an epoch that a callback cut short", match=message):
        train(tmp_path, str(tmp_path / "checkpoint-15"), WithASampler, save_strategy="no", **options)
    assert train(tmp_path, None, callbacks=[Cut()], save_steps=15, **options) == STREAM[:22]
    rest = train(tmp_path, str(tmp_path / "checkpoint-15"), save_strategy="no", **options)
    exact("Hugging Face Trainer", "`max_steps`, `num_train_epochs`", seen=rest, whole=STREAM[15:22])


def test_samples_grouped_by_length_are_refused(tmp_path: Path) -> None:
    message = "train_sampling_strategy should be 'random'.*but got 'group_by_length'"
    options = {"gradient_accumulation_steps": 1, "per_device_train_batch_size": 12, "max_steps": 2}
    name = {"train_sampling_strategy": "group_by_length"}
    if "train_sampling_strategy" not in TrainingArguments.__dataclass_fields__:
        name = {"group_by_length": True}
    with refused("Hugging Face Trainer", "`group_by_length`", match=message):
        train(tmp_path, None, **options, **name)
