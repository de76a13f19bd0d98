"""Streams in the frameworks' own loops: the adapters of the samplers take a `PooledIterableDataset` too."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from ways import exact, refused

from replenish.torch import PooledIterableDataset

pytestmark = pytest.mark.filterwarnings("ignore")  # the Trainers have advice about workers, logging and resuming


def dataset(workers: int = 0) -> PooledIterableDataset[int]:
    return PooledIterableDataset(
        range(1000), batch_size=10, pool_size=50, steps_per_epoch=10, seed=3, num_workers=workers
    )


def whole(workers: int, epochs: int) -> list[list[int]]:
    found = []
    for epoch in range(epochs):
        data = dataset(workers)
        data.set_epoch(epoch)
        found += list(DataLoader(data, batch_size=None, num_workers=workers))
    return found


@pytest.mark.parametrize(("workers", "histories"), [(0, 10), (2, 2)])
def test_accelerate(workers: int, histories: int, tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    from replenish.integrations.accelerate import prepare

    for seed in range(histories):
        draw = random.Random(seed)
        seen: list[list[int]] = []
        for stop in sorted(draw.sample(range(1, 40), 3)):
            accelerator = accelerate.Accelerator(cpu=True)
            loader, progress = prepare(accelerator, DataLoader(dataset(workers), batch_size=None, num_workers=workers))
            if seen:
                accelerator.load_state(str(tmp_path / str(seed)))
            assert progress.step == len(seen)
            for epoch in range(progress.epoch, 4):
                progress.set_epoch(epoch)
                for batch in loader:
                    seen.append(list(map(int, batch)))
                    progress.step += 1
                    if len(seen) == stop:
                        break
                if len(seen) == stop:
                    break
            accelerator.save_state(str(tmp_path / str(seed)))
        exact("streams", "Accelerate, `prepare` and `Progress`", seen=seen, whole=whole(workers, 4)[: len(seen)])


def test_a_loop_that_forgets_to_count() -> None:
    from replenish.torch import Progress

    data = dataset()
    progress = Progress(data)
    list(data)
    with refused(
        "streams", "a loop with `Progress` that does not count", error=RuntimeError, match="progress is at step 0"
    ):
        next(iter(data))
    assert progress.step == 0


class Model(nn.Module):
    """A model that remembers the batches that it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, index: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.training:
            self.seen.append(index.tolist())
        return {"loss": self.weight + labels.sum()}


@pytest.mark.parametrize(("workers", "parts"), [(0, 1), (0, 2), (2, 1)])
def test_the_hugging_face_trainer(workers: int, parts: int, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from replenish.integrations.transformers import SRSTrainer, StreamPosition

    def make(data: Any) -> Any:
        def collate(items: list[int]) -> dict[str, torch.Tensor]:
            return {"index": torch.tensor(items), "labels": torch.zeros(len(items))}

        return DataLoader(data, batch_size=None, collate_fn=collate, num_workers=workers)

    class Trainer(transformers.Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return make(self.train_dataset)

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            return make(range(3))

    def trainer(of: Any = Trainer, skip: bool = True, **options: Any) -> Any:
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
            logging_strategy="no", max_steps=25 // parts, ignore_data_skip=skip, gradient_accumulation_steps=parts,
            **options,
        )  # fmt: skip
        data = dataset(workers)
        callbacks = [StreamPosition(data)] if of is Trainer else []
        return of(model=Model(), args=arguments, train_dataset=data, callbacks=callbacks)

    def train(resume: Any, **options: Any) -> list[list[int]]:
        made = trainer(**options)
        made.train(resume_from_checkpoint=resume)
        return made.model.seen

    expected = whole(workers, 3)[: 25 // parts * parts]
    assert train(None, save_steps=2) == expected
    for step in (step for step in (4, 10, 12) if step * parts < len(expected)):
        rest = train(str(tmp_path / f"checkpoint-{step}"), save_strategy="no")
        exact(
            "streams", "Hugging Face Trainer, `StreamPosition`", seen=rest, whole=expected[step * parts :], where=step
        )
    if parts == 1 and not workers:
        with refused(
            "streams", "`StreamPosition` without `ignore_data_skip=True`", match="ignore_data_skip should be True"
        ):
            train(None, skip=False, save_strategy="no")
        with refused("streams", "a stream as the dataset of `SRSTrainer`", match="DataLoader with IterableDataset"):
            trainer(SRSTrainer, skip=False, save_strategy="no").train()


@pytest.mark.parametrize("workers", [0, 2])
def test_the_lightning_trainer(workers: int, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    from lightning.pytorch.callbacks import ModelCheckpoint

    from replenish.integrations.lightning import SamplerCheckpoint

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(()))
            self.seen: list[list[int]] = []

        def training_step(self, batch: list[int], index: int) -> torch.Tensor:
            self.seen.append(list(map(int, batch)))
            return self.weight * 1.0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(resume: Any = None, **keep: Any) -> list[list[int]]:
        data, module = dataset(workers), Module()
        callbacks = [SamplerCheckpoint(data)]
        if resume is None:
            callbacks.append(ModelCheckpoint(dirpath=tmp_path, save_top_k=-1, filename="{step}", every_n_train_steps=3))
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=callbacks, enable_checkpointing=resume is None, max_epochs=3, use_distributed_sampler=False,
        )  # fmt: skip
        trainer.fit(module, DataLoader(data, batch_size=None, collate_fn=list, num_workers=workers), ckpt_path=resume)
        return module.seen

    expected = whole(workers, 3)
    assert fit() == expected
    for step in (3, 12, 27):
        way = "Lightning Trainer, `SamplerCheckpoint(dataset)`, checkpoints every n steps"
        exact("streams", way, seen=fit(tmp_path / f"step={step}.ckpt"), whole=expected[step:], where=step)
