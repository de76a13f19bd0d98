"""Streams under the frameworks: resumes from many checkpoints, compared with one run; what goes wrong is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata: pip install 'replenish[torchdata]'")

import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader
from ways import exact, refused

from replenish.stream import PooledStream
from replenish.torch import PooledIterableDataset

pytestmark = pytest.mark.filterwarnings("ignore")  # the Trainers have advice about workers, logging and resuming


def dataset() -> PooledIterableDataset[int]:
    return PooledIterableDataset(range(1000), batch_size=10, pool_size=50, steps_per_epoch=10, seed=3)


def stream(start: int, stop: int) -> list[list[int]]:
    whole = PooledStream(range(1000), batch_size=10, pool_size=50, seed=3)
    return [next(whole) for _ in range(stop)][start:]


class TestLightning:
    """The data module carries the dataset's epoch, torchdata's loader the place within it."""

    def fit(self, made: Any, checkpoint: Any = None, *, carried: bool = True, keep: Any = None, **ends: Any) -> Any:
        lightning = pytest.importorskip("lightning")
        from test_resume import recorder

        class Data(lightning.LightningDataModule):
            start: Any = None

            def train_dataloader(self) -> Any:
                self.dataset = dataset()
                if self.start is not None:
                    self.dataset.load_state_dict(self.start)
                return made(self.dataset, batch_size=None, collate_fn=lambda items: [torch.tensor(items)])

            def state_dict(self) -> Any:
                return self.dataset.state_dict() if carried else {}

            def load_state_dict(self, state_dict: Any) -> None:
                self.start = state_dict or None

        module = recorder()
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            callbacks=[] if keep is None else [keep], enable_checkpointing=keep is not None, **ends,
        )  # fmt: skip
        trainer.fit(module, Data(), ckpt_path=checkpoint)
        return module.seen

    def saved(self, folder: Path, made: Any, every: int | None, **options: Any) -> list[Path]:
        callbacks = pytest.importorskip("lightning.pytorch.callbacks")
        cadence = {} if every is None else {"every_n_train_steps": every}
        keep = callbacks.ModelCheckpoint(dirpath=folder, save_top_k=-1, filename="{step}", **cadence)
        assert self.fit(made, keep=keep, max_epochs=3, **options) == stream(0, 30)
        return sorted(folder.glob("*.ckpt"), key=lambda path: int(path.stem.partition("=")[2]))

    def test_any_step(self, tmp_path: Path) -> None:
        way = "`StatefulDataLoader`, and the dataset's state in a data module"
        for every in (None, 3):
            for path in self.saved(tmp_path / str(every), StatefulDataLoader, every)[:-1]:
                step = int(path.stem.partition("=")[2])
                rest = self.fit(StatefulDataLoader, path, max_epochs=3)
                exact("streams, Lightning Trainer", way, seen=rest, whole=stream(step, 30), where=(every, step))

    def test_a_plain_loader(self, tmp_path: Path) -> None:
        way = "`DataLoader`, at epochs' ends, with a data module"
        for path in self.saved(tmp_path / "ends", DataLoader, None)[:-1]:
            step = int(path.stem.partition("=")[2])
            rest = self.fit(DataLoader, path, max_epochs=3)
            exact("streams, Lightning Trainer", way, seen=rest, whole=stream(step, 30), where=step)
        within = self.saved(tmp_path / "within", DataLoader, 7)[0]
        message = "StatefulDataLoader to resume a stream within an epoch, of which 7"
        with refused("streams, Lightning Trainer", "`DataLoader`, within an epoch", match=message):
            self.fit(DataLoader, within, max_epochs=3)

    def test_a_dataset_that_is_told_nothing(self, tmp_path: Path) -> None:
        path = self.saved(tmp_path, StatefulDataLoader, None, carried=False)[0]
        message = r"dataset\.state_dict\(\) should be in the checkpoint, kept by a data"
        with refused("streams, Lightning Trainer", "at epochs' ends, without a data module", match=message):
            self.fit(StatefulDataLoader, path, carried=False, max_epochs=3)


def test_accelerate(tmp_path: Path) -> None:
    """The loader is not prepared, and is what is registered."""
    way = "`register_for_checkpointing` of a `StatefulDataLoader`"
    accelerate = pytest.importorskip("accelerate")
    for seed in range(20):
        seen: list[list[int]] = []
        for stop in sorted(random.Random(seed).sample(range(1, 40), 3)):
            accelerator = accelerate.Accelerator(cpu=True)
            loader = StatefulDataLoader(dataset(), batch_size=None)
            accelerator.register_for_checkpointing(loader)
            if seen:
                accelerator.load_state(str(tmp_path / str(seed)))
            while len(seen) < stop:
                for batch in loader:
                    seen.append(batch)
                    if len(seen) == stop:
                        break
            accelerator.save_state(str(tmp_path / str(seed)))
        exact("streams, Accelerate", way, seen=seen, whole=stream(0, len(seen)), where=seed)


@pytest.mark.parametrize(("prepared", "workers"), [(True, 0), (False, 0), (False, 2)])
def test_the_hugging_face_trainer(prepared: bool, workers: int, tmp_path: Path) -> None:
    """It sets the epoch of a loader that Accelerate prepared, and of no other; it skips by reading again."""
    transformers = pytest.importorskip("transformers")
    from test_resume import hugging_face_model

    def make(data: Any) -> Any:
        def collate(items: list[int]) -> dict[str, torch.Tensor]:
            return {"index": torch.tensor(items), "labels": torch.zeros(len(items))}

        return DataLoader(data, batch_size=None, collate_fn=collate, num_workers=workers)

    class Trainer(transformers.Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return self.accelerator.prepare(make(self.train_dataset)) if prepared else make(self.train_dataset)

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            return make(self.eval_dataset)

    def train(resume: Any, **options: Any) -> list[list[int]]:
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
            logging_strategy="no", max_steps=25, **options,
        )  # fmt: skip
        trainer = Trainer(model=hugging_face_model(), args=arguments, train_dataset=dataset(), eval_dataset=dataset())
        trainer.train(resume_from_checkpoint=resume)
        return trainer.model.seen

    whole = train(None, save_steps=4, eval_strategy="steps", eval_steps=12)
    if not workers:  # which have a part of the source each
        assert whole == stream(0, 25)
    for step in (4, 12, 20):
        checkpoint = str(tmp_path / f"checkpoint-{step}")
        if prepared or step < 10:
            way = "loader prepared, one process" if prepared else "loader not prepared, in the first epoch"
            rest = train(checkpoint, save_strategy="no")
            exact("streams, Hugging Face Trainer", way, seen=rest, whole=whole[step:], where=step)
            continue
        message = rf"loader should be prepared, .* goes on with epoch {step // 10}, but the stream would begin epoch 0"
        with refused("streams, Hugging Face Trainer", "loader not prepared, in a later epoch", match=message):
            train(checkpoint, save_strategy="no")
