"""The Lightning Trainer and Fabric: random histories of checkpoints and ways to train, compared with one run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightning", minversion="2.5", reason="needs lightning: pip install 'replenish[lightning]'")

import lightning
import torch
from contracts import as_lists
from lightning.fabric import Fabric
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset
from ways import exact, refused

from replenish import SequencedReplacement
from replenish.torch import SRSBatchSampler, SRSSampler

pytestmark = pytest.mark.filterwarnings("ignore")  # the Trainer has advice about workers, logging and resuming

DATA = TensorDataset(torch.arange(100))
STREAM = as_lists(SequencedReplacement(100, 10, seed=3).batches(0, 80))


class Data(lightning.LightningDataModule):
    """As on the page: it carries the sampler's state."""

    def __init__(self, kind: str, workers: int) -> None:
        super().__init__()
        self.kind, self.workers = kind, workers
        self.start: dict[str, Any] | None = None

    def train_dataloader(self) -> DataLoader[Any]:
        if self.kind == "batches":
            self.sampler: Any = SRSBatchSampler(DATA, 10, seed=3)
            loader = DataLoader(DATA, batch_sampler=self.sampler, num_workers=self.workers)
        else:
            self.sampler = SRSSampler(DATA, 10, seed=3)
            loader = DataLoader(DATA, sampler=self.sampler, batch_size=10, num_workers=self.workers)
        if self.start is not None:
            self.sampler.load_state_dict(self.start)
        return loader

    def val_dataloader(self) -> DataLoader[Any]:
        return DataLoader(DATA, batch_size=50)

    def state_dict(self) -> dict[str, Any]:
        return dict(self.sampler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.start = state_dict


class Module(lightning.LightningModule):
    """Keeps what it was trained on."""

    def __init__(self, optimizers: int) -> None:
        super().__init__()
        self.number = optimizers
        self.automatic_optimization = optimizers == 1
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor | None:
        self.seen.append(batch[0].tolist())
        if self.number == 1:
            return self.weight * 1.0
        for optimizer in self.optimizers():
            optimizer.step()
        return None

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        pass

    def configure_optimizers(self) -> Any:
        made = [torch.optim.SGD(self.parameters(), lr=1e-9) for _ in range(self.number)]
        return made[0] if self.number == 1 else made


def fit(way: dict[str, Any], checkpoint: Any = None, callbacks: tuple[Any, ...] = (), **options: Any) -> Any:
    way = dict(way)
    carries_state = way.pop("carries_state", True)
    module, data = Module(way.pop("optimizers", 1)), Data(way.pop("kind"), way.pop("workers", 0))
    keeps = any(isinstance(callback, ModelCheckpoint) for callback in callbacks)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, callbacks=list(callbacks), enable_checkpointing=keeps,
        **way, **options,
    )  # fmt: skip
    # Without the data module, only the Trainer's own counts say where it was.
    source = (
        {"datamodule": data}
        if carries_state
        else {"train_dataloaders": data.train_dataloader(), "val_dataloaders": data.val_dataloader()}
    )
    trainer.fit(module, **source, ckpt_path=checkpoint)
    return module.seen, trainer


def stopped_by_max_steps(name: str, way: dict[str, Any], draw: random.Random, folder: Path) -> None:
    """`fit` to a step, `save_checkpoint`, and again to a farther one, which any number of times."""
    steps = sorted(draw.sample(range(1, 50), 3))
    whole, _ = fit(way, max_steps=steps[-1], max_epochs=-1)
    seen, checkpoint = [], None
    for step in steps:
        more, trainer = fit(way, checkpoint, max_steps=step, max_epochs=-1)
        checkpoint = folder / f"{step}.ckpt"
        trainer.save_checkpoint(checkpoint)
        seen += more
    exact("Lightning Trainer", name, seen=seen, whole=whole, where=(way, steps))


def saved_by_a_callback(name: str, way: dict[str, Any], draw: random.Random, folder: Path, every: int | None) -> None:
    """A run that was killed after one of its checkpoints; each of them is as good as another."""
    epochs = draw.randint(2, 3)
    options = {} if every is None else {"every_n_train_steps": every}
    keep = ModelCheckpoint(dirpath=folder, save_top_k=-1, filename="{step}-{epoch}", **options)
    ends = {"max_epochs": epochs} if draw.random() < 0.7 else {"max_steps": 25, "max_epochs": -1}
    whole, _ = fit(way, callbacks=(keep,), **ends)
    saved = sorted(folder.glob("*.ckpt"))
    for checkpoint in draw.sample(saved, min(2, len(saved))):
        progress = torch.load(checkpoint, weights_only=False)["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        rest, _ = fit(way, checkpoint, **ends)
        left = whole[progress["total"]["ready"] :]
        exact("Lightning Trainer", name, seen=rest, whole=left, where=(way, ends, checkpoint.name))


TRAINER: dict[str, dict[str, Any]] = {
    "`max_epochs`, checkpoints at epochs' ends": {"every": None},
    "checkpoints every n steps": {"every": 3},
    "`max_steps`, `save_checkpoint` after `fit`": {},
    "`limit_train_batches`": {"limit_train_batches": 4, "every": 2},
    "`accumulate_grad_batches`": {"accumulate_grad_batches": 3, "every": 1},
    "two optimizers": {"optimizers": 2, "every": 4},
    "`reload_dataloaders_every_n_epochs`": {"reload_dataloaders_every_n_epochs": 1, "every": 4},
    "`val_check_interval`": {"val_check_interval": 3, "every": None},
    "workers": {"workers": 2, "every": 5},
    "several of these at once": {},
    "a loader given to `fit`, without a data module": {"carries_state": False},
}
RANDOM_OPTIONS = ("several of these at once", "a loader given to `fit`, without a data module")


def several_at_once(draw: random.Random) -> dict[str, Any]:
    choices = {
        "limit_train_batches": [4, 7],
        "accumulate_grad_batches": [2, 3],
        "reload_dataloaders_every_n_epochs": [1, 2],
        "val_check_interval": [2, 4],
        "num_sanity_val_steps": [0],
        "every": [None, 1, 2, 5],
    }
    chosen = draw.sample(list(choices), draw.randint(2, 4))
    return {name: draw.choice(choices[name]) for name in chosen}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINER)
def test_trainer(name: str, tmp_path: Path) -> None:
    for seed in range(4 if name == "workers" else 22):
        draw = random.Random(seed)
        way = {**TRAINER[name], "kind": draw.choice(["batches", "indices"])}
        if name in RANDOM_OPTIONS:
            way |= several_at_once(draw)
        if not way.get("carries_state", True):
            way.pop("reload_dataloaders_every_n_epochs", None)  # a loader that is given is never another
            way["workers"] = 2 if seed == 0 else 0
        every = way.pop("every", 0)
        folder = tmp_path / str(seed)
        if every == 0 or draw.random() < 0.4:
            stopped_by_max_steps(name, way, draw, folder)
        else:
            saved_by_a_callback(name, way, draw, folder, every)


def test_the_stream_is_what_is_trained_on() -> None:
    for kind in ("batches", "indices"):
        assert fit({"kind": kind}, max_epochs=3)[0] == STREAM[:30]
        assert fit({"kind": kind, "reload_dataloaders_every_n_epochs": 1}, max_epochs=3)[0] == STREAM[:30]
        limited = fit({"kind": kind, "limit_train_batches": 4}, max_epochs=3)[0]
        assert limited == STREAM[:4] + STREAM[10:14] + STREAM[20:24]


def test_overfit_batches(tmp_path: Path) -> None:
    """The same batches in every epoch; `SRSSampler` is replaced by the Trainer, which says so."""
    way = {"kind": "batches", "overfit_batches": 3}
    seen, trainer = fit(way, max_epochs=2)
    assert seen == 2 * STREAM[:3]
    trainer.save_checkpoint(tmp_path / "end.ckpt")
    rest, _ = fit(way, tmp_path / "end.ckpt", max_epochs=4)
    exact("Lightning Trainer", "`overfit_batches`, at an epoch's end", seen=rest, whole=2 * STREAM[:3])
    _, trainer = fit(way, max_steps=5)
    trainer.save_checkpoint(tmp_path / "within.ckpt")
    message = "overfit_batches should be 0 to resume within an epoch"
    with refused("Lightning Trainer", "`overfit_batches`, within an epoch", match=message):
        fit(way, tmp_path / "within.ckpt", max_steps=8)


@pytest.mark.parametrize("kind", ["batches", "indices"])
def test_an_epoch_that_was_cut_short(kind: str, tmp_path: Path) -> None:
    """As by `max_time`: with `max_epochs` the Trainer takes it for a whole one, and its rest would never come."""
    by_steps = "`max_time` or `should_stop` within an epoch, resumed with `max_steps`"
    by_epochs = "`max_time` or `should_stop` within an epoch, resumed with `max_epochs`"

    class Stop(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            trainer.should_stop = trainer.global_step == 13

    seen, trainer = fit({"kind": kind}, callbacks=(Stop(),), max_epochs=3)
    trainer.save_checkpoint(tmp_path / "c.ckpt")
    message = "max_epochs should be -1, with max_steps, .* here after 3 batches"
    with refused("Lightning Trainer", by_epochs, match=message):
        fit({"kind": kind}, tmp_path / "c.ckpt", max_epochs=3)
    rest, _ = fit({"kind": kind}, tmp_path / "c.ckpt", max_steps=30, max_epochs=-1)
    exact("Lightning Trainer", by_steps, seen=seen + rest, whole=STREAM[:30])


def test_a_state_of_optimizer_steps_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = "a state saved with `global_step` under accumulation"
    way = {"kind": "batches", "accumulate_grad_batches": 3}
    monkeypatch.setattr(Data, "state_dict", lambda self: self.sampler.state_dict(step=self.trainer.global_step))
    _, trainer = fit(way, max_steps=2)
    trainer.save_checkpoint(tmp_path / "c.ckpt")
    with refused("Lightning Trainer", row, match="state should be of the batch that the Trainer was at, 6 batches"):
        fit(way, tmp_path / "c.ckpt", max_steps=4)


def test_a_stateful_loader_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    row, message = "torchdata's `StatefulDataLoader`", "loader should be torch's own DataLoader for Lightning's Trainer"
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    monkeypatch.setitem(Data.train_dataloader.__globals__, "DataLoader", stateful)
    with refused("Lightning Trainer", row, match=message):
        fit({"kind": "batches"}, max_epochs=1)


@pytest.mark.parametrize("kind", ["batches", "indices"])
@pytest.mark.parametrize("look", [False, True])
def test_fabric(kind: str, look: bool) -> None:
    """It calls `set_epoch` with the number of passes of this process, which says nothing of the run."""
    ways = ["whole epochs, `set_epoch` by Fabric", *(["a look at the data first"] if look else [])]

    def start(state: Any) -> tuple[Any, Any]:
        data = Data(kind, 0)
        data.start = state
        loader = Fabric(accelerator="cpu", devices=1).setup_dataloaders(data.train_dataloader())
        if look:
            next(iter(loader))
        return data.sampler, loader

    for seed in range(50):
        draw, step, state, seen = random.Random(seed), 0, None, []
        for stop in sorted(draw.sample(range(1, 45), 3)):
            sampler, loader = start(state)
            while step < stop:
                for (batch,) in loader:
                    seen.append(batch.tolist())
                    step += 1
                    if step == stop:
                        break
            state = sampler.state_dict(step=step)
            assert state == sampler.state_dict()
        exact("Lightning Fabric", *ways, seen=seen, whole=STREAM[:step], where=seed)
