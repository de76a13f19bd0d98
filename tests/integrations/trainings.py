"""One small training per stack, as people write it: it saves now and then, and resumes from its folder.

Each function imports its framework and returns a training. A training draws its options from a generator that is the
same in every attempt of a history, and passes its batches to the diary. It returns the batches of an uninterrupted run,
by the definition of the order, and the rows of `ways.WAYS` that it used.
"""

from __future__ import annotations

import copy
import os
import queue
import random
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import torch
from contracts import as_lists
from torch.utils.data import DataLoader, TensorDataset

from replenish import RandomReshuffling, SequencedReplacement
from replenish.torch import (
    OrderBatchSampler,
    Progress,
    ReshufflingBatchSampler,
    SRSBatchSampler,
    SRSSampler,
)

DATA = TensorDataset(torch.arange(40))
EPOCH = 10  # batches of four
EPOCHS = 3


class Diary(Protocol):
    def begin(self, trained_before: int) -> None:
        """Record the number of batches trained before the checkpoint."""

    def train(self, batch: list[int]) -> None:
        """Record a batch, or interrupt its step with an exception."""


Training = Callable[[random.Random, Path, Diary], tuple[list[list[int]], set[str]]]


def stream(start: int = 0, stop: int = 80, order: Any = None) -> list[list[int]]:
    return as_lists((order or SequencedReplacement(40, 4, seed=3)).batches(start, stop))


def epochs(limit: int, order: Any = None) -> list[list[int]]:
    """Return the batches of epochs that are left after `limit` batches."""
    return [batch for epoch in range(EPOCHS) for batch in stream(epoch * EPOCH, epoch * EPOCH + limit, order)]


def replace(path: Path, saved: object) -> None:
    """Save to a temporary name and rename it, so that a kill leaves a whole file."""
    torch.save(saved, path.with_suffix(".new"))
    path.with_suffix(".new").rename(path)


def sampler_and_loader(
    draw: random.Random, make: Any = DataLoader, wrap: Any = None, **options: Any
) -> tuple[Any, Any]:
    """Return a sampler of SRS and a loader, which has two workers in one of 25 histories."""
    if draw.random() < 0.04:
        options |= {"num_workers": 2, "persistent_workers": draw.random() < 0.5}
    wrap = wrap or (lambda sampler: sampler)
    if draw.random() < 0.6:
        sampler: Any = SRSBatchSampler(DATA, 4, seed=3)
        return sampler, make(DATA, batch_sampler=wrap(sampler), **options)
    sampler = SRSSampler(DATA, 4, seed=3)
    return sampler, make(DATA, sampler=wrap(sampler), batch_size=4, **options)


def one_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches with the next one already fetched, like Accelerate and timm."""
    ahead = next(batches, None)
    while ahead is not None:
        current, ahead = ahead, next(batches, None)
        yield current


def from_a_thread(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches that a thread puts into a queue of eight."""
    waiting: queue.Queue[Any] = queue.Queue(8)
    stopped = threading.Event()

    def put(batch: Any) -> None:
        while not stopped.is_set():
            try:
                waiting.put(batch, timeout=0.05)
            except queue.Full:
                continue
            return

    def run() -> None:
        for batch in batches:
            put(batch)
            if stopped.is_set():
                return
        put(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield from iter(waiting.get, None)
    finally:
        stopped.set()
        thread.join()


def pytorch() -> Training:
    """Whole or cut epochs, prefetchers, looks at the data, and checkpoints before or after a step."""

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        kind = draw.choice(["srs", "srs", "reshuffling", "order"])
        if kind == "srs":
            sampler, loader = sampler_and_loader(draw)
        else:
            make = ReshufflingBatchSampler if kind == "reshuffling" else None
            order = RandomReshuffling(40, 4, seed=3)
            sampler = OrderBatchSampler(order) if make is None else make(DATA, 4, seed=3)
            loader = DataLoader(DATA, batch_sampler=sampler)
        limit, every, first_saves = draw.choice([10, 10, 4]), draw.randint(1, 4), draw.random() < 0.3
        sets_epoch, looks = limit < EPOCH or draw.random() < 0.5, draw.random() < 0.3
        prefetched = draw.choice([iter, iter, one_ahead, from_a_thread])
        duplicates, path, step = draw.random() < 0.1, folder / "checkpoint.pt", 0
        if path.exists():
            saved = torch.load(path, weights_only=True)
            step = saved["step"]
            sampler.load_state_dict(saved)
        epoch, done = divmod(step, EPOCH)
        diary.begin(epoch * limit + min(done, limit))
        if looks:
            next(iter(loader))
            sampler.seek(step)
        if duplicates:
            sampler = copy.deepcopy(sampler)
            assert isinstance(sampler, SRSBatchSampler | SRSSampler | OrderBatchSampler)
            keyword = (
                {"sampler": sampler, "batch_size": 4} if isinstance(sampler, SRSSampler) else {"batch_sampler": sampler}
            )
            loader = DataLoader(DATA, **keyword)

        def batches() -> Iterator[Any]:
            for number in range(epoch, EPOCHS):
                rest = limit - done if number == epoch else limit
                if rest <= 0:
                    continue
                if sets_epoch:
                    sampler.set_epoch(number)
                if limit == EPOCH:
                    yield from ((number, batch) for batch in loader)
                else:  # prefetch each epoch by itself: starting the next epoch would end the pass of this one
                    yield from prefetched((number, batch) for batch in islice(loader, rest))

        def save() -> None:
            replace(path, sampler.state_dict(step))

        for number, (batch,) in prefetched(batches()) if limit == EPOCH else batches():
            if step // EPOCH != number:
                step = number * EPOCH
            if first_saves and step % every == 0:
                save()
            diary.train(batch.tolist())
            step += 1
            if not first_saves and step % every == 0:
                save()
        names = {
            "`ReshufflingBatchSampler`, `OrderBatchSampler`": kind != "srs",
            "whole epochs, with or without `set_epoch`": limit == EPOCH,
            "epochs left early, with `set_epoch`": limit < EPOCH,
            "a look at the data, then `seek` or `set_epoch`": looks,
            "a prefetcher: one batch ahead, or a thread with a queue": prefetched is not iter,
            "workers, persistent or not": loader.num_workers > 0,
            "an exception within a step": True,
        }
        own = None if kind == "srs" else RandomReshuffling(40, 4, seed=3)
        return epochs(limit, own), {name for name, played in names.items() if played}

    return train


def lightning() -> Training:
    """`SamplerCheckpoint` with every kind of checkpoint of the Trainer."""
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint

    from replenish.integrations.lightning import SamplerCheckpoint

    class Module(L.LightningModule):
        def __init__(self, diary: Diary, saves_itself: Path | None, optimizers: int) -> None:
            super().__init__()
            self.weight, self.diary = torch.nn.Parameter(torch.zeros(())), diary
            self.saves_itself, self.number = saves_itself, optimizers
            self.automatic_optimization = optimizers == 1
            self.register_buffer("trained", torch.tensor(0))

        def on_train_start(self) -> None:
            self.diary.begin(int(self.trained))

        def training_step(self, batch: Any) -> Any:
            if self.saves_itself is not None and int(self.trained) % 3 == 1:  # like a signal handler
                self.trainer.save_checkpoint(self.saves_itself / "signal.ckpt")
            self.diary.train((batch["main"] if isinstance(batch, dict) else batch)[0].tolist())
            self.trained += 1
            if self.number == 1:
                return self.weight * 1.0
            for optimizer in self.optimizers():
                optimizer.step()
            return None

        def validation_step(self, batch: Any) -> None:
            pass

        def configure_optimizers(self) -> Any:
            made = [torch.optim.SGD(self.parameters(), lr=1e-9) for _ in range(self.number)]
            return made[0] if self.number == 1 else made

    options_of_ways = {
        "`limit_train_batches`": {"limit_train_batches": 4},
        "`accumulate_grad_batches`": {"accumulate_grad_batches": 3},
        "`reload_dataloaders_every_n_epochs`": {"reload_dataloaders_every_n_epochs": 1},
        "`val_check_interval`": {"val_check_interval": 3},
    }

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        sampler, loader = sampler_and_loader(draw)
        rows, options = {"an exception within a step"}, {}
        for name in draw.sample(list(options_of_ways), draw.choice([0, 1, 1, 2, 3])):
            options |= options_of_ways[name]
            rows.add(name)
        optimizers = 2 if draw.random() < 0.2 and "accumulate_grad_batches" not in options else 1
        by = draw.choice(["steps", "steps", "epochs", "exception", "signal"])
        rows.add(
            {
                "steps": "checkpoints every n steps",
                "epochs": "checkpoints at epochs' ends",
                "exception": "`OnExceptionCheckpoint`",
                "signal": "`save_checkpoint` from a signal handler",
            }[by]
        )
        rows |= {"two optimizers"} if optimizers == 2 else set()
        rows |= {"workers"} if loader.num_workers else set()
        limit = options.get("limit_train_batches", EPOCH)
        per_epoch = -(-limit // options.get("accumulate_grad_batches", 1)) * optimizers
        steps = draw.choice([None, draw.randint(3, 11)])
        expected = epochs(limit)
        if steps is not None:
            rows.add("`max_steps`")
            steps *= optimizers
            whole, rest = divmod(steps, per_epoch)
            rest = min(rest * options.get("accumulate_grad_batches", 1) // optimizers, limit)
            expected = [batch for e in range(whole) for batch in stream(e * EPOCH, e * EPOCH + limit)]
            expected += stream(whole * EPOCH, whole * EPOCH + rest)
        ends: dict[str, Any] = {"max_epochs": EPOCHS} if steps is None else {"max_steps": steps, "max_epochs": -1}
        samplers, loaders = [sampler], loader
        if draw.random() < 0.15:
            rows.add("several loaders of unequal length in a dict")
            shorter = SRSBatchSampler(range(12), 4, seed=5)
            samplers, loaders = (
                [sampler, shorter],
                {"main": loader, "short": DataLoader(range(12), batch_sampler=shorter)},
            )
        callbacks: list[Any] = [SamplerCheckpoint(*samplers)]
        if by == "exception":
            callbacks.append(KeptOnException(folder, "exception"))
        else:
            every = {} if by != "steps" else {"every_n_train_steps": draw.randint(1, 3)}
            callbacks.append(ModelCheckpoint(dirpath=folder, save_top_k=-1, filename="{step}-{epoch}", **every))
        trainer = L.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            use_distributed_sampler=False, callbacks=callbacks, **options, **ends,
        )  # fmt: skip
        latest = max(folder.glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns, default=None)
        module = Module(diary, folder if by == "signal" else None, optimizers)
        validation = DataLoader(DATA, batch_size=40) if "val_check_interval" in options else None
        trainer.fit(module, loaders, validation, ckpt_path=latest)
        return expected, rows

    class KeptOnException(OnExceptionCheckpoint):
        def teardown(self, *_: Any, **__: Any) -> None:
            """Keep the file, which the base class would remove."""

    return train


def fabric() -> Training:
    """`Progress` among the objects that Fabric saves."""
    from lightning.fabric import Fabric

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        sampler, loader = sampler_and_loader(draw)
        engine = Fabric(accelerator="cpu", devices=1)
        loader = engine.setup_dataloaders(loader, use_distributed_sampler=False)
        limit, every, path = draw.choice([10, 4]), draw.randint(1, 4), folder / "checkpoint.ckpt"
        state = {"progress": Progress(sampler)}
        if path.exists():
            engine.load(path, state)
        rows = counted_epochs(
            draw, state["progress"], loader, limit, diary, lambda step: step % every or engine.save(path, state)
        )
        return epochs(limit), rows

    return train


def accelerate() -> Training:
    """`Progress` with `prepare` of the adapter, with `accelerator.prepare`, or with a loader that is not prepared."""
    from accelerate import Accelerator

    from replenish.integrations.accelerate import prepare

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        accelerator = Accelerator(cpu=True)
        sampler, loader = sampler_and_loader(draw)
        limit, every, way = draw.choice([10, 4]), draw.randint(1, 4), draw.choice(["adapter", "adapter", "own", "not"])
        if way == "adapter":
            loader, progress = prepare(accelerator, loader)
        else:
            progress = Progress(sampler)
            accelerator.register_for_checkpointing(progress)
            loader = accelerator.prepare(loader) if way == "own" else loader
        saved = sorted(folder.glob("step-*"), key=lambda path: int(path.name[5:]))
        if saved:
            accelerator.load_state(str(saved[-1]))
        rows = counted_epochs(
            draw,
            progress,
            loader,
            limit,
            diary,
            lambda step: step % every or accelerator.save_state(str(folder / f"step-{step}")),
        )
        names = {
            "adapter": "`prepare` of the adapter",
            "own": "`accelerator.prepare` on one process, with `Progress`",
            "not": "a loader that is not prepared, with `Progress`",
        }
        return epochs(limit), rows | {names[way]}

    return train


def counted_epochs(
    draw: random.Random, progress: Progress, loader: Any, limit: int, diary: Diary, save: Callable[[int], object]
) -> set[str]:
    """Train epochs with a `Progress`, as on the pages of Fabric and Accelerate; return the rows used."""
    done = progress.step % EPOCH
    diary.begin(progress.epoch * limit + min(done, limit))
    looks = draw.random() < 0.3
    if looks:
        next(iter(loader))
    for epoch in range(progress.epoch, EPOCHS):
        progress.set_epoch(epoch)
        for (batch,) in islice(loader, max(0, limit - progress.step % EPOCH)):
            diary.train(batch.tolist())
            progress.step += 1
            save(progress.step)
    rows = {"whole epochs" if limit == EPOCH else "epochs left early, with `progress.set_epoch`"}
    rows |= {"a look at the data, then `progress.set_epoch`"} if looks else set()
    return rows | ({"workers"} if loader.num_workers else set()) | {"an exception within a step"}


def torchdata() -> Training:
    """The loader's own state, with workers and snapshots every few steps."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    from replenish.integrations.torchdata import StatefulSampler

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        snapshots = draw.choice([1, 1, 3])
        _, loader = sampler_and_loader(draw, StatefulDataLoader, StatefulSampler, snapshot_every_n_steps=snapshots)
        path, every, looks = folder / "checkpoint.pt", draw.randint(1, 4), draw.random() < 0.3
        if looks:
            state = loader.state_dict()
            next(iter(loader))
            loader.load_state_dict(state)
        trained = 0
        if path.exists():
            saved = torch.load(path, weights_only=False)
            trained = saved["trained"]
            loader.load_state_dict(saved["loader"])
        diary.begin(trained)
        while trained < 25:
            for (batch,) in islice(loader, 25 - trained):
                diary.train(batch.tolist())
                trained += 1
                if trained % every == 0:
                    replace(path, {"trained": trained, "loader": loader.state_dict()})
        rows = {"the loader's own state", "an exception within a step"}
        rows |= {"a look at the data, then the state before it"} if looks else set()
        return stream(0, 25), rows | ({"workers"} if loader.num_workers else set())

    return train


def transformers() -> Training:
    """The Trainer's own checkpoints, resumed by `resume_from_checkpoint=True`."""
    from transformers import TrainerCallback, TrainingArguments

    from replenish.integrations.transformers import SRSTrainer

    class Model(torch.nn.Module):
        def __init__(self, diary: Diary) -> None:
            super().__init__()
            self.weight, self.diary, self.parts = torch.nn.Parameter(torch.zeros(())), diary, 1
            self.waiting: list[int] = []

        def forward(self, index: torch.Tensor, labels: torch.Tensor) -> Any:
            if self.training:
                self.waiting += index.tolist()
                if len(self.waiting) == 4:
                    batch, self.waiting = self.waiting, []
                    self.diary.train(batch)
            return {"loss": self.weight + labels.sum()}

    class Begin(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            others["model"].diary.begin(state.global_step)

    class Cut(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            control.should_epoch_stop = state.global_step in (4, 13)

    class WithALoader(SRSTrainer):
        def make_loader(self, batch_sampler: Any) -> Any:
            return DataLoader(self.train_dataset, batch_sampler=batch_sampler, collate_fn=self.data_collator)

    rows_of_data = [{"index": torch.tensor(number), "labels": torch.tensor(0)} for number in range(40)]

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        steps, cuts, own = draw.choice([None, 17]), draw.random() < 0.3, draw.random() < 0.3
        workers, evaluates = 2 if draw.random() < 0.04 else 0, draw.random() < 0.2
        save_steps, parts = draw.randint(1, 4), random.choice([1, 2, 4])  # `parts` changes at every resume
        arguments = TrainingArguments(
            output_dir=str(folder), data_seed=3, use_cpu=True, report_to="none", disable_tqdm=True,
            gradient_accumulation_steps=parts, per_device_train_batch_size=4 // parts, save_steps=save_steps,
            dataloader_pin_memory=False, logging_strategy="no", save_total_limit=2, dataloader_num_workers=workers,
            **({"max_steps": 17} if steps else {"num_train_epochs": 2}),
            **({"eval_strategy": "steps", "eval_steps": 4} if evaluates else {}),
        )  # fmt: skip
        trainer = (WithALoader if own else SRSTrainer)(
            model=Model(diary), args=arguments, train_dataset=rows_of_data, eval_dataset=rows_of_data[:4],
            callbacks=[Begin(), *([Cut()] if cuts else [])],
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
        names = {
            "`max_steps`, `num_train_epochs`": True,
            "gradient accumulation, another after a resume": True,
            "epochs that a callback cuts short": cuts,
            "your own loader, by `make_loader`": own,
            "workers": workers > 0,
            "an exception within a step": True,
        }
        return trainer, {name for name, played in names.items() if played}

    def checked(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        trainer, names = train(draw, folder, diary)
        return stream(0, trainer.state.global_step), names

    return checked


def keras() -> Training:
    """Models saved every few batches, or `BackupAndRestore` at the ends of epochs."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras as framework
    import numpy as np

    from replenish.integrations.keras import SRSDataset, batches_trained

    @framework.saving.register_keras_serializable("replenish-tests")
    class Model(framework.Model):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.dense, self.diary = framework.layers.Dense(1), None

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs[:, None])

        def train_step(self, data: Any) -> Any:
            self.diary.train(framework.ops.convert_to_numpy(data[0]).astype(int).tolist())
            return super().train_step(data)

    class Begin(framework.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if not self.model.begun:
                self.model.diary.begin(batches_trained(self.model))
            self.model.begun = True

    def train(draw: random.Random, folder: Path, diary: Diary) -> tuple[list[list[int]], set[str]]:
        inputs = np.arange(40, dtype="float32")
        dataset = SRSDataset((inputs, inputs), 4, seed=3)
        saved, steps, by_batches = folder / "model.keras", draw.randint(2, 4), draw.random() < 0.5
        accumulate, save_freq = draw.choice([None, 2]), draw.randint(1, 3)
        if saved.exists():
            model = framework.saving.load_model(saved)
        else:
            model = Model()
            model.compile(framework.optimizers.SGD(1e-9, gradient_accumulation_steps=accumulate), loss="mse")
        model.diary, model.begun = diary, False
        if by_batches:
            # Epochs have one step here, since Keras repeats an interrupted epoch.
            keep = framework.callbacks.ModelCheckpoint(str(saved), save_freq=save_freq)
            begun = batches_trained(model) if saved.exists() else 0
            options: dict[str, Any] = {"initial_epoch": begun, "steps_per_epoch": 1, "epochs": 3 * steps}
        else:
            keep = framework.callbacks.BackupAndRestore(str(folder / "backup"), delete_checkpoint=False)
            options = {"steps_per_epoch": steps, "epochs": 3}
        callbacks = [keep, dataset.callback, Begin()]
        model.fit(dataset, callbacks=callbacks, shuffle=False, verbose=0, **options)
        rows = {"a saved model, at any batch" if by_batches else "`BackupAndRestore`", "an exception within a step"}
        return stream(0, 3 * steps), rows | ({"`gradient_accumulation_steps`"} if accumulate else set())

    return train


TRAININGS: dict[str, Callable[[], Training]] = {
    "PyTorch": pytorch,
    "Lightning Trainer": lightning,
    "Lightning Fabric": fabric,
    "Accelerate": accelerate,
    "torchdata": torchdata,
    "Hugging Face Trainer": transformers,
    "Keras": keras,
}
