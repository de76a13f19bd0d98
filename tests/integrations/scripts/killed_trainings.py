"""A small training a stack, as people write it, that saves now and then and goes on from what it finds in its folder.

Each function imports its framework and returns the training. What it does is drawn from a generator that is the same in
every process of a history.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from replenish.torch import PooledIterableDataset, SRSBatchSampler, SRSSampler

DATA = TensorDataset(torch.arange(100))  # ten batches of ten an epoch


class Diary:
    """What a process trained on, written before it is killed."""

    def __init__(self, path: Path, kill_after: int) -> None:
        self.path, self.kill_after = path, kill_after
        self.trained = 0

    def begin(self, trained_before: int) -> None:
        """Take note of how many batches the checkpoint had trained, from which this process goes on."""
        self._write(trained_before)

    def note(self, batch: list[int]) -> None:
        """Take note of a batch, after which the process may be killed."""
        self._write(batch)
        self.trained += 1
        if self.trained == self.kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, what: object) -> None:
        with open(self.path, "a") as file:
            print(json.dumps(what), file=file)


Training = Callable[[random.Random, Path, Diary], None]


def replace(path: Path, saved: object) -> None:
    """Save as a script does that may be killed: beside, and put into place."""
    torch.save(saved, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def sampler_and_loader(draw: random.Random, make: Any = DataLoader) -> tuple[Any, Any]:
    workers = {"num_workers": 2 if draw.random() < 0.2 else 0}
    if draw.random() < 0.5:
        sampler: Any = SRSBatchSampler(DATA, 10, seed=3)
        return sampler, make(DATA, batch_sampler=sampler, **workers)
    sampler = SRSSampler(DATA, 10, seed=3)
    return sampler, make(DATA, sampler=sampler, batch_size=10, **workers)


def pytorch() -> Training:
    """Epochs, `set_epoch`, a limit, a checkpoint every few steps."""

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        sampler, loader = sampler_and_loader(draw)
        limit, every = draw.choice([10, 10, 4]), draw.randint(1, 4)
        calls_set_epoch, path = limit < 10 or draw.random() < 0.5, folder / "checkpoint.pt"
        first = done = trained = 0
        if path.exists():
            saved = torch.load(path)
            first, done, trained = saved["epoch"], saved["done"], saved["trained"]
            sampler.load_state_dict(saved["sampler"])
        diary.begin(trained)
        for epoch in range(first, 3):
            if calls_set_epoch:
                sampler.set_epoch(epoch)
            for (batch,) in loader if done < limit else ():
                diary.note(batch.tolist())
                done, trained = done + 1, trained + 1
                if trained % every == 0:
                    state = sampler.state_dict()
                    replace(path, {"epoch": epoch, "done": done, "trained": trained, "sampler": state})
                if done == limit:
                    break
            done = 0

    return train


def lightning() -> Training:
    """A data module that carries the state, and a ModelCheckpoint."""
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Data(L.LightningDataModule):
        def __init__(self, seed: float) -> None:
            super().__init__()
            self.seed, self.start = seed, None

        def train_dataloader(self) -> Any:
            self.sampler, loader = sampler_and_loader(random.Random(self.seed))
            if self.start is not None:
                self.sampler.load_state_dict(self.start)
            return loader

        def val_dataloader(self) -> Any:
            return DataLoader(DATA, batch_size=50)

        def state_dict(self) -> Any:
            return self.sampler.state_dict()

        def load_state_dict(self, state_dict: Any) -> None:
            self.start = state_dict

    class Module(L.LightningModule):
        def __init__(self, diary: Diary) -> None:
            super().__init__()
            self.weight, self.diary = torch.nn.Parameter(torch.zeros(())), diary
            self.register_buffer("trained", torch.tensor(0))

        def on_train_start(self) -> None:
            self.diary.begin(int(self.trained))

        def training_step(self, batch: Any) -> Any:
            self.trained += 1
            self.diary.note(batch[0].tolist())
            return self.weight * 1.0

        def validation_step(self, batch: Any) -> None:
            pass

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        data = Data(draw.random())
        options = draw.choice(
            [{}, {"limit_train_batches": 4}, {"accumulate_grad_batches": 3}, {"val_check_interval": 3},
             {"reload_dataloaders_every_n_epochs": 1}]
        )  # fmt: skip
        saves = draw.choice([{}, {"every_n_train_steps": 1}, {"every_n_train_steps": 2}])
        ends = draw.choice([{"max_epochs": 3}, {"max_steps": 11, "max_epochs": -1}])
        keep = ModelCheckpoint(dirpath=folder, save_top_k=-1, filename="{step}-{epoch}", **saves)
        trainer = L.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            use_distributed_sampler=False, callbacks=[keep], **options, **ends,
        )  # fmt: skip
        latest = max(folder.glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns, default=None)
        trainer.fit(Module(diary), data, ckpt_path=latest)

    return train


def transformers() -> Training:
    """The Trainer's own checkpoints, gone on with by `resume_from_checkpoint=True`."""
    from transformers import TrainerCallback, TrainingArguments

    from replenish.integrations.transformers import SRSTrainer

    class Model(torch.nn.Module):
        def __init__(self, diary: Diary) -> None:
            super().__init__()
            self.weight, self.diary = torch.nn.Parameter(torch.zeros(())), diary

        def forward(self, index: torch.Tensor, labels: torch.Tensor) -> Any:
            if self.training:
                self.diary.note(index.tolist())
            return {"loss": self.weight + labels.sum()}

    class Begin(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            others["model"].diary.begin(state.global_step * args.gradient_accumulation_steps)

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        parts = draw.choice([1, 2, 5])
        rows = [{"index": torch.tensor(number), "labels": torch.tensor(0)} for number in range(100)]
        ends = draw.choice([{"max_steps": 23}, {"num_train_epochs": 2}])
        evaluates = {"eval_strategy": "steps", "eval_steps": 4} if draw.random() < 0.3 else {}
        arguments = TrainingArguments(
            output_dir=str(folder), data_seed=3, use_cpu=True, report_to="none", disable_tqdm=True, **ends, **evaluates,
            gradient_accumulation_steps=parts, per_device_train_batch_size=10 // parts, save_steps=draw.randint(1, 4),
            dataloader_pin_memory=False, logging_strategy="no", save_total_limit=2,
            dataloader_num_workers=2 if draw.random() < 0.2 else 0,
        )  # fmt: skip
        trainer = SRSTrainer(
            model=Model(diary), args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=[Begin()]
        )
        trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))

    return train


def accelerate() -> Training:
    """`save_state` and `load_state`, with a loader that is prepared or not."""
    from accelerate import Accelerator

    from replenish.integrations.accelerate import Progress

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        accelerator = Accelerator(cpu=True)
        sampler, loader = sampler_and_loader(draw)
        if draw.random() < 0.6:
            loader = accelerator.prepare(loader)
        progress, every = Progress(sampler), draw.randint(1, 4)
        accelerator.register_for_checkpointing(progress)
        saved = sorted(folder.glob("step-*"), key=lambda path: int(path.name[5:]))
        if saved:
            accelerator.load_state(str(saved[-1]))
        diary.begin(progress.step)
        while progress.step < 25:
            for (batch,) in loader:
                diary.note(batch.tolist())
                progress.step += 1
                if progress.step % every == 0:
                    accelerator.save_state(str(folder / f"step-{progress.step}"))
                if progress.step == 25:
                    break

    return train


def torchdata() -> Training:
    """The loader's own state, with workers and with a snapshot every few steps."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        snapshots = draw.choice([1, 1, 3])
        _, loader = sampler_and_loader(
            draw, lambda *args, **options: StatefulDataLoader(*args, snapshot_every_n_steps=snapshots, **options)
        )
        until_the_end(loader, draw.randint(1, 4), folder / "checkpoint.pt", diary, lambda batch: batch[0].tolist())

    return train


def streams() -> Training:
    """A stream in torchdata's loader: a source that can seek, or one whose pool is in the state."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        seekable = draw.random() < 0.6
        source: Any = range(100) if seekable else dict.fromkeys(range(100))
        ends = draw.choice([{"repeat": False}, {"steps_per_epoch": 8}])
        dataset = PooledIterableDataset(source, batch_size=10, pool_size=30, seed=3, store_items=not seekable, **ends)
        loader = StatefulDataLoader(dataset.stateful(), batch_size=None)
        until_the_end(loader, draw.randint(1, 4), folder / "checkpoint.pt", diary, list)

    return train


def until_the_end(loader: Any, every: int, path: Path, diary: Diary, as_list: Callable[[Any], list[int]]) -> None:
    """Train to step 25, with the loader's own state in every checkpoint."""
    trained = 0
    if path.exists():
        saved = torch.load(path, weights_only=False)
        trained = saved["trained"]
        loader.load_state_dict(saved["loader"])
    diary.begin(trained)
    while trained < 25:
        for batch in loader:
            diary.note(as_list(batch))
            trained += 1
            if trained % every == 0:
                replace(path, {"trained": trained, "loader": loader.state_dict()})
            if trained == 25:
                break


def keras() -> Training:
    """Models saved every few batches, or `BackupAndRestore` at the ends of epochs."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras as framework
    import numpy as np

    from replenish.integrations.keras import SRSDataset, batches_trained

    @framework.saving.register_keras_serializable("replenish-kills")
    class Model(framework.Model):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.dense, self.diary = framework.layers.Dense(1), None

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs[:, None])

        def train_step(self, data: Any) -> Any:
            logs = super().train_step(data)
            self.diary.note(framework.ops.convert_to_numpy(data[0]).astype(int).tolist())
            return logs

    class Begin(framework.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if self.model.diary.trained == 0:
                self.model.diary.begin(batches_trained(self.model))

    def train(draw: random.Random, folder: Path, diary: Diary) -> None:
        inputs = np.arange(100, dtype="float32")
        dataset = SRSDataset((inputs, inputs), 10, seed=3)
        saved, steps, by_batches = folder / "model.keras", draw.randint(3, 6), draw.random() < 0.5
        accumulate = draw.choice([None, 2])
        if saved.exists():
            model = framework.saving.load_model(saved)
        else:
            model = Model()
            model.compile(framework.optimizers.SGD(1e-9, gradient_accumulation_steps=accumulate), loss="mse")
        model.diary = diary
        if by_batches:
            # Epochs are of one step here, since Keras begins an epoch that was interrupted anew.
            keep = framework.callbacks.ModelCheckpoint(str(saved), save_freq=draw.randint(1, 4))
            begun, ends = batches_trained(model), {"steps_per_epoch": 1, "epochs": 4 * steps}
            options = {"initial_epoch": begun, **ends}
        else:
            keep = framework.callbacks.BackupAndRestore(str(folder / "backup"), delete_checkpoint=False)
            options = {"steps_per_epoch": steps, "epochs": 4}
        model.fit(dataset, callbacks=[keep, Begin()], shuffle=False, verbose=0, **options)

    return train


TRAININGS: dict[str, Callable[[], Training]] = {
    function.__name__: function
    for function in (pytorch, lightning, transformers, accelerate, torchdata, keras, streams)
}
