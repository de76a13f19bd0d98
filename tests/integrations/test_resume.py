"""Resumes of all stacks: random histories of interruptions, and every way to loop that is refused or not kept."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import re
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import histories
import pytest
import torch
from integration_support import hugging_face_trainer, joined, lightning_module
from torch.utils.data import DataLoader
from trainings import DATA, TRAININGS, from_a_thread, one_ahead, stream
from ways import exact, lost, refused, warned

from replenish import RandomReshuffling
from replenish.torch import PooledIterableDataset, Progress, SRSBatchSampler, SRSSampler

HISTORIES = 80
NEEDS = {
    "Lightning Trainer": "lightning",
    "Lightning Fabric": "lightning",
    "Accelerate": "accelerate",
    "torchdata": "torchdata.stateful_dataloader",
    "Hugging Face Trainer": "transformers",
    "Keras": "keras",
}
# After two resumes, or without validation, Lightning counts some unfinished epochs as finished.
MAY_BE_REFUSED = {"Lightning Trainer": "the Trainer continues with batch .* batches would be left out or repeated"}

pytestmark = pytest.mark.filterwarnings("ignore")  # the frameworks warn about workers, logging and resuming


@pytest.fixture(autouse=True)
def _quiet_and_new() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
    if "accelerate" in sys.modules:
        from accelerate.state import AcceleratorState, GradientState, PartialState

        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()


def need(stack: str) -> None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    if stack in NEEDS:
        pytest.importorskip(NEEDS[stack], reason=f"needs {NEEDS[stack]}")


@pytest.mark.slow
@pytest.mark.parametrize("stack", TRAININGS)
def test_histories(stack: str, tmp_path: Path) -> None:
    """After exceptions, looks and cut epochs, with prefetchers and workers, a resume is exact or refused."""
    need(stack)
    train, errors = TRAININGS[stack](), 0
    for seed in range(HISTORIES):
        try:
            seen, expected, ways = histories.history(train, seed, tmp_path / str(seed))
        except ValueError as error:
            if not re.search(MAY_BE_REFUSED.get(stack, "^never$"), str(error)):
                raise
            errors += 1
            continue
        exact(stack, *ways, seen=seen, whole=expected, where=seed)
    assert errors <= HISTORIES // 10


def srs(**options: Any) -> tuple[SRSBatchSampler, DataLoader[Any]]:
    sampler = SRSBatchSampler(DATA, 4, seed=3)
    return sampler, DataLoader(DATA, batch_sampler=sampler, collate_fn=batch_numbers, **options)


def indices(**options: Any) -> tuple[SRSSampler, DataLoader[Any]]:
    sampler = SRSSampler(DATA, 4, seed=3)
    return sampler, DataLoader(DATA, batch_size=4, sampler=sampler, collate_fn=batch_numbers, **options)


def batch_numbers(rows: list[tuple[torch.Tensor]]) -> list[int]:
    return [int(number) for (number,) in rows]


class TestPyTorch:
    @pytest.mark.parametrize("prefetched", [one_ahead, from_a_thread])
    @pytest.mark.parametrize("workers", [0, 2])
    def test_prefetchers(self, prefetched: Any, workers: int) -> None:
        """The loop has trained on ten batches and drawn more. Only the step that it passes counts."""
        sampler, loader = srs(num_workers=workers)
        batches = prefetched(batch for _ in range(3) for batch in loader)
        seen = list(islice(batches, 10))
        with refused(
            "PyTorch", "`state_dict()` without a step, within an epoch", match="should be the number of steps t"
        ):
            sampler.state_dict()
        state = sampler.state_dict(step=10)
        resumed, again = srs()
        resumed.load_state_dict(state)
        way = "a prefetcher: one batch ahead, or a thread with a queue"
        exact("PyTorch", way, seen=seen + list(again), whole=stream(0, 20))
        batches.close()

    def test_a_prefetcher_over_the_end_of_an_epoch_left_early(self) -> None:
        sampler, loader = srs()

        def epochs() -> Iterator[Any]:
            for epoch in range(2):
                sampler.set_epoch(epoch)
                yield from islice(loader, 4)

        batches = one_ahead(epochs())
        list(islice(batches, 4))  # the first batch of the next epoch is drawn too
        way = "a prefetcher that begins the next epoch after one left early"
        with refused("PyTorch", way, match="step should be from 10, .* but got 4"):
            sampler.state_dict(4)

    def test_a_wrong_step(self) -> None:
        sampler, loader = srs()
        seen = []
        with refused("PyTorch", "a step counted within the epoch", match="step should be from 10, .* but got 1;"):
            for _ in range(2):
                for step, batch in enumerate(loader, start=1):
                    seen.append(batch)
                    sampler.state_dict(step)  # saved at every step
                    if len(seen) == 17:
                        break
        sampler, loader = srs()
        seen = list(islice(loader, 8))
        resumed, again = srs()
        resumed.load_state_dict(sampler.state_dict(step=4))  # four updates of two batches each
        way = "optimizer steps of accumulated gradients given as the step"
        lost("PyTorch", way, seen=seen + list(again), whole=stream(0, 10))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_checkpoint_loaded_within_a_pass(self, workers: int) -> None:
        """The loop returns to a checkpoint, or loads one after iter(loader)."""
        sampler, loader = srs(num_workers=workers)
        state = sampler.state_dict(3)
        batches = iter(loader)
        next(batches)
        sampler.load_state_dict(state)
        way = "`seek` or `load_state_dict` within a pass"
        with refused(
            "PyTorch", way, error=RuntimeError, match=r"seek\(3\) was called while a pass that began at step 0"
        ):
            next(batches)
        assert list(loader) == stream(3, 10)

    def test_batches_of_another_size(self) -> None:
        sampler = SRSSampler(DATA, 4, seed=3)
        seen = list(islice(DataLoader(DATA, sampler=sampler, batch_size=8, collate_fn=batch_numbers), 3))
        resumed, again = indices()
        resumed.load_state_dict(sampler.state_dict(step=3))  # 24 samples, which are six steps
        way = "batches of another size than the `SRSSampler`'s given as the step"
        lost("PyTorch", way, seen=list(itertools.chain(*seen, *again)), whole=list(itertools.chain(*stream(0, 10))))

    def test_cycle_keeps_the_first_pass(self) -> None:
        whole = list(islice(itertools.cycle(srs()[1]), 20))
        lost("PyTorch", "`itertools.cycle(loader)`", seen=whole, whole=stream(0, 20))

    def test_a_compiled_loop(self) -> None:
        _, loader = srs()

        @torch.compile(backend="eager")
        def train(total: torch.Tensor, seen: list[list[int]]) -> torch.Tensor:
            for batch in loader:
                total = total + len(batch)
                seen.append(batch)
            return total

        seen: list[list[int]] = []
        assert int(train(torch.zeros(()), seen)) == int(train(torch.zeros(()), seen)) == 40
        exact("PyTorch", "a loop under `torch.compile`", seen=seen, whole=stream(0, 20))

    def test_wrappers_of_any_depth_and_name(self) -> None:
        """A sampler does not depend on what draws from it: wrappers, a thread, or a `collate_fn`."""

        class Renamed(DataLoader[Any]):
            pass

        class Wrapped:
            def __init__(self, inner: Any) -> None:
                self.inner = inner

            def __iter__(self) -> Any:
                return iter(list(self.inner)) if isinstance(self.inner, Wrapped) else iter(self.inner)

        inner, _ = srs()
        drawn: list[list[int]] = []
        other = iter(inner)

        def collate(rows: Any) -> list[int]:
            drawn.append(next(other))
            return batch_numbers(rows)

        sampler = SRSBatchSampler(DATA, 4, seed=3)
        wrapped: Any = Renamed(DATA, batch_sampler=sampler, collate_fn=collate)
        for _ in range(40):
            wrapped = Wrapped(wrapped)
        seen: list[list[int]] = []
        thread = threading.Thread(target=lambda: seen.extend(wrapped))
        thread.start()
        thread.join()
        way = "wrappers, subclasses and threads around the loader"
        exact("PyTorch", way, seen=(seen, drawn), whole=(stream(0, 10), stream(0, 10)))
        assert sampler.state_dict(step=6)["step"] == inner.state_dict(step=6)["step"] == 6

    def test_batches_out_of_order(self) -> None:
        if "in_order" not in DataLoader.__init__.__code__.co_varnames:
            pytest.skip("DataLoader has in_order since torch 2.6")

        class Slow(torch.utils.data.Dataset[Any]):
            def __len__(self) -> int:
                return 40

            def __getitem__(self, index: int) -> Any:
                if index in stream(0, 1)[0]:
                    threading.Event().wait(0.1)  # the first batch comes late
                return (torch.tensor(index),)

        def start(step: int = 0) -> Any:
            sampler = SRSBatchSampler(Slow(), 4, seed=3)
            sampler.seek(step)
            options = {"num_workers": 2, "in_order": False, "collate_fn": batch_numbers}
            return sampler, DataLoader(Slow(), batch_sampler=sampler, **options)

        _, loader = start()
        first = list(loader)
        exact("PyTorch", "`in_order=False`, at epochs' ends", seen=sorted(first), whole=sorted(stream(0, 10)))
        rest = list(start(3)[1])
        lost("PyTorch", "`in_order=False`, within an epoch", seen=sorted(first[:3] + rest), whole=sorted(stream(0, 10)))


class TestLightning:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        need("Lightning Trainer")

    def fit(self, loaders: Any, *samplers: Any, checkpoint: Any = None, callbacks: Any = (), **options: Any) -> Any:
        import lightning

        from replenish.integrations.lightning import SamplerCheckpoint

        kept = [SamplerCheckpoint(*samplers)] if samplers else []
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            use_distributed_sampler=False, callbacks=[*kept, *callbacks], **{"enable_checkpointing": False, **options},
        )  # fmt: skip
        module = lightning_module()
        source = (
            {"datamodule": loaders}
            if isinstance(loaders, lightning.LightningDataModule)
            else {"train_dataloaders": loaders}
        )
        trainer.fit(module, **source, ckpt_path=checkpoint)
        return module.seen, trainer

    @pytest.mark.parametrize("mode", ["max_size_cycle", "min_size", "max_size"])
    @pytest.mark.parametrize("workers", [0, 1])
    def test_several_loaders(self, mode: str, workers: int, tmp_path: Path) -> None:
        """The shorter loader starts again within an epoch, and its sampler continues."""
        from lightning.pytorch.utilities import CombinedLoader

        def start() -> Any:
            long, loader = srs(num_workers=workers)
            short = SRSBatchSampler(range(12), 4, seed=5)
            parts = {"long": loader, "short": DataLoader(range(12), batch_sampler=short, collate_fn=list)}
            return CombinedLoader(parts, mode), long, short

        if mode == "max_size":
            way = 'several loaders, `CombinedLoader(mode="max_size")`'
            with refused("Lightning Trainer", way, match="should be 'max_size_cycle' or 'min_size'"):
                self.fit(*start(), max_epochs=1)
            return
        whole, _ = self.fit(*start(), max_epochs=3)
        for stop in (1, 4, 8, 15, 25) if mode == "max_size_cycle" else (1, 4, 8):
            seen, trainer = self.fit(*start(), max_steps=stop, max_epochs=-1)
            assert seen == whole[:stop]
            trainer.save_checkpoint(tmp_path / "c.ckpt")
            rest, _ = self.fit(*start(), checkpoint=tmp_path / "c.ckpt", max_steps=len(whole), max_epochs=-1)
            way = "several loaders of unequal length in a dict"
            exact("Lightning Trainer", way, seen=rest, whole=whole[stop:], where=(mode, stop))

    def test_an_epoch_cut_short(self, tmp_path: Path) -> None:
        import lightning

        class Stop(lightning.Callback):
            def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
                trainer.should_stop = trainer.global_step == 13

        def start() -> Any:
            sampler, loader = srs()
            return loader, sampler

        seen, trainer = self.fit(*start(), callbacks=[Stop()], max_epochs=3)
        trainer.save_checkpoint(tmp_path / "c.ckpt")
        resumed = {"checkpoint": tmp_path / "c.ckpt"}
        way = "`max_time` or `should_stop` within an epoch, resumed with `max_epochs`"
        with refused(
            "Lightning Trainer", way, match="continues with batch 0 of its epoch, but 3 batches .* max_epochs=-1"
        ):
            self.fit(*start(), **resumed, max_epochs=3)
        rest, _ = self.fit(*start(), **resumed, max_steps=30, max_epochs=-1)
        way = "`max_time` or `should_stop` within an epoch, resumed with `max_steps`"
        exact("Lightning Trainer", way, seen=seen + rest, whole=stream(0, 30))

    def test_from_an_epochs_end_by_steps(self, tmp_path: Path) -> None:
        """Without validation, the Trainer trains on one more batch of the epoch that has ended."""
        from lightning.pytorch.callbacks import ModelCheckpoint

        def start() -> Any:
            sampler, loader = srs()
            return loader, sampler

        keep = ModelCheckpoint(dirpath=tmp_path, filename="{epoch}", save_top_k=-1)
        self.fit(*start(), callbacks=[keep], enable_checkpointing=True, max_epochs=2)
        way = "`max_steps`, from a checkpoint at an epoch's end, without validation"
        with refused("Lightning Trainer", way, match="continues with batch 10 of its epoch, but 0 batches"):
            self.fit(*start(), checkpoint=tmp_path / "epoch=0.ckpt", max_steps=25, max_epochs=-1)

    def test_what_is_refused(self, tmp_path: Path) -> None:
        import lightning

        sampler, loader = srs()
        with refused("Lightning Trainer", "`overfit_batches`", match="overfit_batches should be 0"):
            self.fit(loader, sampler, overfit_batches=3, max_epochs=2)

        class Data(lightning.LightningDataModule):
            def train_dataloader(self) -> Any:
                return srs()[1]

        way = "a new sampler in every `train_dataloader()`"
        with refused(
            "Lightning Trainer", way, match="samplers should be those of the training loaders.*make a sampler once"
        ):
            self.fit(Data(), sampler, max_epochs=1)
        _, trainer = self.fit(srs()[1], max_epochs=1)
        trainer.save_checkpoint(tmp_path / "c.ckpt")
        sampler, loader = srs()
        way = "a checkpoint saved without the callback"
        with refused(
            "Lightning Trainer", way, match="ckpt_path should be a checkpoint that was saved with SamplerCheck"
        ):
            self.fit(loader, sampler, checkpoint=tmp_path / "c.ckpt", max_epochs=3)

    @pytest.mark.parametrize("workers", [0, 1])
    def test_a_tuner(self, workers: int, tmp_path: Path) -> None:
        """The tuner trains without the callback, and leaves a pass early."""
        import lightning
        from lightning.pytorch.tuner import Tuner

        from replenish.integrations.lightning import SamplerCheckpoint

        sampler, loader = srs(num_workers=workers)
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, logger=False, enable_progress_bar=False, enable_model_summary=False,
            use_distributed_sampler=False, callbacks=[SamplerCheckpoint(sampler)], max_epochs=1,
            enable_checkpointing=False, default_root_dir=tmp_path,
        )  # fmt: skip
        module = lightning_module()
        module.lr = 1e-9
        Tuner(trainer).lr_find(module, loader, num_training=4)
        module.seen.clear()
        trainer.fit(module, loader)
        exact("Lightning Trainer", "`Tuner.lr_find` before `fit`", seen=module.seen, whole=stream(0, 10))

    def test_a_stateful_loader(self) -> None:
        need("torchdata")
        from torchdata.stateful_dataloader import StatefulDataLoader

        sampler, _ = srs()
        way = "torchdata's `StatefulDataLoader`"
        with refused("Lightning Trainer", way, match="loader should be torch's DataLoader, but got a Stateful"):
            self.fit(StatefulDataLoader(DATA, batch_sampler=sampler), sampler, max_epochs=1)

    def test_without_the_adapter(self, tmp_path: Path) -> None:
        whole, _ = self.fit(srs(num_workers=1)[1], max_epochs=3)
        exact("Lightning Trainer", "without the adapter: not resumed", seen=whole, whole=stream(0, 30))
        for stop in (10, 13):
            _, trainer = self.fit(srs()[1], max_steps=stop, max_epochs=-1)
            trainer.save_checkpoint(tmp_path / f"{stop}.ckpt")
        _, trainer = self.fit(srs()[1], max_epochs=1)
        trainer.save_checkpoint(tmp_path / "end.ckpt")
        ends = {"checkpoint": tmp_path / "end.ckpt", "max_epochs": 3}
        rest, _ = self.fit(srs()[1], **ends)
        exact("Lightning Trainer", "without the adapter: resumed at an epoch's end", seen=rest, whole=stream(10, 30))
        way = "without the adapter: resumed at an epoch's end, with workers"
        with refused("Lightning Trainer", way, error=RuntimeError, match=r"set_epoch\(1\) was called while a pass"):
            self.fit(srs(num_workers=1)[1], **ends)
        with warned("Lightning Trainer", "without the adapter: resumed within an epoch", match="not resumable"):
            self.fit(srs()[1], checkpoint=tmp_path / "13.ckpt", max_steps=20, max_epochs=-1)


class TestFabric:
    def test_without_progress(self) -> None:
        need("Lightning Fabric")
        from lightning.fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=1)

        def start() -> Any:
            sampler, loader = srs()
            return sampler, fabric.setup_dataloaders(loader, use_distributed_sampler=False)

        sampler, loader = start()
        seen = [batch for _ in range(2) for batch in loader]
        exact("Lightning Fabric", "without `Progress`: not resumed", seen=seen, whole=stream(0, 20))
        resumed, again = start()
        resumed.load_state_dict(sampler.state_dict(step=20))
        with refused(
            "Lightning Fabric", "without `Progress`: resumed", match="epoch should be at least 2, .* but got 0"
        ):
            next(iter(again))
        sampler, loader = start()
        next(iter(loader))
        list(islice(loader, 3))  # Fabric sets epoch 1 here
        with refused(
            "Lightning Fabric", "without `Progress`: a look at the data", match="step should be from 10, .* but"
        ):
            sampler.state_dict(step=3)


class TestAccelerate:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        need("Accelerate")

    def test_a_loop_that_does_not_count(self) -> None:
        from accelerate import Accelerator

        from replenish.integrations.accelerate import prepare

        way = "a loop that does not count, or leaves an epoch without `progress.set_epoch`"
        for counts, trained in ((False, 10), (True, 4)):
            loader, progress = prepare(Accelerator(cpu=True), srs()[1])
            for _ in islice(loader, trained) if counts else loader:
                progress.step += counts
            with refused(
                "Accelerate", way, error=RuntimeError, match="but the progress is at step|position is unknown"
            ):
                next(iter(loader))

    def test_batches_out_of_order(self) -> None:
        from accelerate import Accelerator

        from replenish.integrations.accelerate import prepare

        loader = DataLoader(DATA, batch_sampler=SRSBatchSampler(DATA, 4), num_workers=1, in_order=False)
        with refused("Accelerate", "`in_order=False`", match="in_order should be True"):
            prepare(Accelerator(cpu=True), loader)

    @pytest.mark.parametrize("make", [srs, indices])
    @pytest.mark.parametrize("prepared", [False, True])
    def test_skip_first_batches(self, make: Any, prepared: bool) -> None:
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        sampler, loader = make()
        loader = accelerator.prepare(loader) if prepared else loader
        sampler.set_epoch(0)  # Accelerate calls the first pass of a process epoch 0
        seen = list(accelerator.skip_first_batches(loader, 4))
        exact("Accelerate", "`skip_first_batches`, after `set_epoch`", seen=seen, whole=stream(4, 10))

    def test_the_documented_resume_without_the_adapter(self) -> None:
        """Accelerate sets the epoch to the number of passes in this process."""
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)

        def start() -> Any:
            sampler, loader = srs()
            return sampler, accelerator.skip_first_batches(accelerator.prepare(loader), 3)

        _, loader = start()
        way = "without the adapter: `skip_first_batches` in a later epoch, without `set_epoch`"
        lost("Accelerate", way, seen=list(loader), whole=stream(13, 20))
        sampler, loader = start()
        sampler.set_epoch(1)
        way = "without the adapter: `skip_first_batches` in a later epoch, after `set_epoch`"
        with refused("Accelerate", way, match="epoch should be at least 1, .* but got 0"):
            next(iter(loader))

    def test_without_the_adapter(self, tmp_path: Path) -> None:
        from accelerate import Accelerator, DataLoaderConfiguration

        accelerator = Accelerator(cpu=True)
        sampler, loader = srs()
        loader = accelerator.prepare(loader)
        accelerator.register_for_checkpointing(sampler)
        list(islice(loader, 3))
        way = "without the adapter: `register_for_checkpointing(sampler)`"
        with refused("Accelerate", way, match="step should be the number of steps trained"):
            accelerator.save_state(str(tmp_path))
        sampler, loader = srs()
        loader = accelerator.prepare(loader)
        sampler.seek(13)
        way = "without the adapter: prepared on one process, resumed"
        with refused("Accelerate", way, match="epoch should be at least 1, .* but got 0"):
            next(iter(loader))
        need("torchdata")
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
        loader = accelerator.prepare(srs()[1])
        way = "without the adapter: `use_stateful_dataloader=True`"
        with refused("Accelerate", way, match="step should be the number of steps trained"):
            list(loader)

    def test_without_the_adapter_on_several_processes(self) -> None:
        from accelerate.data_loader import prepare_data_loader

        def shares(make: Any, **options: Any) -> list[Any]:
            loaders = []
            for rank in range(2):
                sampler = make(DATA, 4, seed=3, num_replicas=2, rank=rank)
                own = {"batch_sampler": sampler} if make is SRSBatchSampler else {"sampler": sampler, "batch_size": 2}
                loader = DataLoader(DATA, collate_fn=batch_numbers, **own)
                loaders.append(prepare_data_loader(loader, num_processes=2, process_index=rank, **options))
            return [list(loader) for loader in loaders]

        way = "without the adapter: a batch sampler prepared on n processes"
        for options in ({}, {"split_batches": True}):
            with refused("Accelerate", way, match="batch_size should not be read where several processes run"):
                shares(SRSBatchSampler, **options)
        way = "without the adapter: `SRSSampler` prepared on n processes"
        lost("Accelerate", way, seen=joined(shares(SRSSampler)), whole=stream(0, 10))

    def test_dispatched_batches(self) -> None:
        """One process reads for all. With our sampler it reads only its own share, which is then divided again."""
        from accelerate.data_loader import DataLoaderDispatcher, prepare_data_loader

        sampler = SRSBatchSampler(DATA, 4, seed=3, num_replicas=2, rank=0)
        loader = DataLoader(DATA, batch_sampler=sampler)
        dispatched = prepare_data_loader(
            loader, num_processes=2, process_index=0, dispatch_batches=True, put_on_device=True
        )
        assert isinstance(dispatched, DataLoaderDispatcher)
        drawn = list(dispatched.base_dataloader.batch_sampler)  # the samples of all processes together
        lost(
            "Accelerate", "without the adapter: `dispatch_batches=True` on n processes", seen=drawn, whole=stream(0, 10)
        )


class TestTorchdata:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        need("torchdata")

    def start(self, state: Any = None, adapter: bool = True, **options: Any) -> Any:
        from torchdata.stateful_dataloader import StatefulDataLoader

        from replenish.integrations.torchdata import StatefulSampler

        sampler = SRSBatchSampler(DATA, 4, seed=3)
        own: Any = StatefulSampler(sampler) if adapter else sampler
        loader = StatefulDataLoader(DATA, batch_sampler=own, collate_fn=batch_numbers, **options)
        if state is not None:
            loader.load_state_dict(state)
        return sampler, loader

    @pytest.mark.parametrize("workers", [0, 1])
    def test_set_epoch(self, workers: int) -> None:
        """The loop trains on four batches per epoch, and saves after the second epoch."""
        sampler, loader = self.start(num_workers=workers)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            list(islice(loader, 4))
        state = loader.state_dict()
        sampler, loader = self.start(state, num_workers=workers)
        sampler.set_epoch(2)
        way = "`set_epoch` with another epoch, as after one left early"
        with refused("torchdata", way, match="set_epoch should be called with epoch 1, .* step 14, but .* with 2"):
            next(iter(loader))
        sampler, loader = self.start(state, num_workers=workers)
        sampler.set_epoch(1)
        exact("torchdata", "`set_epoch` with the epoch of the state", seen=list(loader), whole=stream(14, 20))

    @pytest.mark.parametrize("stop", [3, 10, 13])
    def test_nodes(self, stop: int) -> None:
        """A node counts epochs itself. If saved with the last batch of an epoch, it sets the wrong next epoch."""
        nodes = pytest.importorskip("torchdata.nodes")
        from replenish.integrations.torchdata import StatefulSampler

        def start() -> Any:
            node = nodes.SamplerWrapper(StatefulSampler(SRSBatchSampler(DATA, 4, seed=3)))
            return nodes.Loader(nodes.Prefetcher(node, prefetch_factor=3))

        loader, seen = start(), list[list[int]]()
        while len(seen) < stop:
            seen += islice(loader, stop - len(seen))
        resumed = start()
        resumed.load_state_dict(loader.state_dict())
        seen += list(resumed)
        if stop == 10:
            way = "`torchdata.nodes`: the same, saved with an epoch's last batch"
            with refused("torchdata", way, match="epoch should be at least 2, .* at step 10 continued epoch 1"):
                list(resumed)
        else:
            seen += list(resumed)
            way = "`torchdata.nodes`: `SamplerWrapper(StatefulSampler(sampler))`"
            exact("torchdata", way, seen=seen, whole=stream(0, len(seen)))

    def test_a_prefetcher_around_the_loader(self) -> None:
        _, loader = self.start()
        batches = one_ahead(iter(loader))
        seen = list(islice(batches, 4))
        rest = list(self.start(loader.state_dict())[1])
        lost("torchdata", "a prefetcher around the loader", seen=seen + rest, whole=stream(0, 10))

    @pytest.mark.parametrize("workers", [0, 1])
    def test_without_the_adapter(self, workers: int) -> None:
        _, loader = self.start(adapter=False, num_workers=workers)
        with refused("torchdata", "without the adapter", match="step should be the number of steps trained.*adapter"):
            list(islice(loader, 3))
            loader.state_dict()


class TestHuggingFace:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        need("Hugging Face Trainer")

    def train(self, kind: Any, folder: Path, resume: Any = None, **options: Any) -> list[list[int]]:
        trainer = hugging_face_trainer(kind, folder, **options)
        trainer.train(resume_from_checkpoint=resume)
        return trainer.model.seen

    def with_a_loader(self, base: Any) -> Any:
        class WithALoader(base):
            def get_train_dataloader(self) -> Any:
                sampler = SRSBatchSampler(self.train_dataset, 4, seed=3)
                loader = DataLoader(self.train_dataset, batch_sampler=sampler, collate_fn=self.data_collator)
                return self.accelerator.prepare(loader)

        return WithALoader

    def cut(self) -> Any:
        from transformers import TrainerCallback

        class Cut(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                control.should_epoch_stop = state.global_step == 4

        return Cut()

    def test_what_is_refused(self, tmp_path: Path) -> None:
        from transformers import TrainingArguments

        from replenish.integrations.transformers import SRSTrainer

        way = "your own loader, by `get_train_dataloader`"
        with refused("Hugging Face Trainer", way, match="get_train_dataloader should not be overridden.*make_loader"):
            self.train(self.with_a_loader(SRSTrainer), tmp_path)
        with refused("Hugging Face Trainer", "`ignore_data_skip=True`", match="ignore_data_skip should be False"):
            self.train(SRSTrainer, tmp_path, ignore_data_skip=True)
        by_length: dict[str, Any] = {"train_sampling_strategy": "group_by_length"}
        if "train_sampling_strategy" not in TrainingArguments.__dataclass_fields__:
            by_length = {"group_by_length": True}
        with refused("Hugging Face Trainer", "`group_by_length`", match="train_sampling_strategy should be 'random'"):
            self.train(SRSTrainer, tmp_path, **by_length)

        class Reshuffled(SRSTrainer):
            def make_order(self, num_samples: int, batch_size: int) -> Any:
                return RandomReshuffling(num_samples, batch_size, seed=3)

        assert self.train(Reshuffled, tmp_path, data=43) == stream(0, 22, RandomReshuffling(43, 4, seed=3))
        way = "gradient accumulation over an order whose batches do not divide into equal parts"
        with refused("Hugging Face Trainer", way, match="gradient_accumulation_steps should be 1 for .* but got 2"):
            self.train(
                Reshuffled, tmp_path, data=43, per_device_train_batch_size=2, gradient_accumulation_steps=2
            )  # the last batch of 3 would be three parts

    def test_a_checkpoint_of_another_stream(self, tmp_path: Path) -> None:
        from replenish.integrations.transformers import SRSTrainer

        self.train(SRSTrainer, tmp_path, save_steps=5, max_steps=5)
        saved = json.loads((tmp_path / "checkpoint-5" / "replenish.json").read_text())
        assert (saved["step"], saved["batch_size"]) == (5, 4)
        for options, message in [
            ({"data_seed": 4}, "seed is 3 in the state but 4 here"),
            ({"per_device_train_batch_size": 2}, "batch_size is 4 in the state but 2 here"),
        ]:
            with pytest.raises(ValueError, match=message):
                self.train(SRSTrainer, tmp_path, True, **options)

    def test_without_the_adapter(self, tmp_path: Path) -> None:
        """The Trainer sets the epoch and skips its trained batches, counting in whole epochs."""
        from transformers import Trainer

        kind = self.with_a_loader(Trainer)
        assert self.train(kind, tmp_path / "a", save_steps=7) == stream(0, 22)
        for step in (7, 14):
            rest = self.train(kind, tmp_path / "b", str(tmp_path / "a" / f"checkpoint-{step}"))
            way = "without the adapter: a loader with our sampler"
            exact("Hugging Face Trainer", way, seen=rest, whole=stream(step, 22))
        resumed = str(tmp_path / "a" / "checkpoint-7")
        rest = self.train(kind, tmp_path / "b", resumed, ignore_data_skip=True)
        way = "without the adapter: a loader with our sampler and `ignore_data_skip=True`"
        lost("Hugging Face Trainer", way, seen=rest, whole=stream(7, 22))
        whole = self.train(kind, tmp_path / "c", callbacks=[self.cut()], save_steps=7)
        rest = self.train(kind, tmp_path / "b", str(tmp_path / "c" / "checkpoint-7"))
        way = "without the adapter: a loader with our sampler, after an epoch that was cut short"
        lost("Hugging Face Trainer", way, seen=rest, whole=whole[7:])


class TestKeras:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        need("Keras")

    def model(self, optimizer: Any = None, built: bool = False) -> Any:
        import keras

        class Recorder(keras.Model):
            def __init__(self) -> None:
                super().__init__()
                self.dense, self.seen = keras.layers.Dense(1), []

            def call(self, inputs: Any) -> Any:
                return self.dense(keras.ops.cast(inputs[:, None], "float32"))

            def train_step(self, data: Any) -> Any:
                self.seen.append(keras.ops.convert_to_numpy(data[0]).astype(int).tolist())
                return super().train_step(data)

        model = Recorder()
        model.compile(optimizer or keras.optimizers.SGD(1e-9), loss="mse")
        if built:
            model.dense.build((None, 1))
            model.built = True
        return model

    def dataset(self, **options: Any) -> Any:
        import numpy as np

        from replenish.integrations.keras import SRSDataset

        return SRSDataset((np.arange(40, dtype="float32"),) * 2, 4, seed=3, **options)

    @pytest.mark.parametrize("start", [None, 7])
    def test_several_fits(self, start: int | None) -> None:
        model, data = self.model(), self.dataset(start=start)
        validation = {"validation_data": self.dataset(start=10**6), "validation_steps": 1}
        for epochs, steps in ((2, 3), (1, 5), (1, 1), (3, 2)):
            options = {"steps_per_epoch": steps, "callbacks": [data.callback], "shuffle": False, "verbose": 0}
            model.fit(data, epochs=epochs, **options, **(validation if steps == 3 else {}))
            if start is not None:
                model.evaluate(data, steps=2, verbose=0)
        first = start or 0
        way = "several `fit`s, `evaluate` between them, `start=` given or not"
        exact("Keras", way, seen=model.seen, whole=stream(first, first + 18))

    def test_what_is_refused(self) -> None:
        import keras

        for built in (False, True):
            data = self.dataset()
            with refused("Keras", "`fit` without `steps_per_epoch`", match="steps_per_epoch should be given.*10 steps"):
                self.model(built=built).fit(data, callbacks=[data.callback], shuffle=False, verbose=0)
            with refused("Keras", "`fit` without the callback", match="callbacks should have dataset.callback"):
                self.model(built=built).fit(self.dataset(), steps_per_epoch=2, shuffle=False, verbose=0)
        data = self.dataset()
        scaled = self.model(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-9)))
        way = "a `LossScaleOptimizer` without `start=`"
        with refused("Keras", way, match="start should be given with a LossScaleOptimizer"):
            scaled.fit(data, steps_per_epoch=2, callbacks=[data.callback], shuffle=False, verbose=0)
        way = "optimizers of your own, or a new `compile`, without `start=`"
        data, model = self.dataset(), self.model()
        options = {"steps_per_epoch": 2, "callbacks": [data.callback], "shuffle": False, "verbose": 0}
        model.fit(data, **options)
        model.compile(keras.optimizers.SGD(1e-9), loss="mse")
        with refused("Keras", way, match="was trained on 2 batches and its optimizer had 0"):
            model.fit(data, **options)
        other = self.model()  # a new model starts from the beginning, with the same dataset
        other.fit(data, **options)
        assert other.seen == stream(0, 2)
        other = self.model()
        other.train_step = lambda data: {"loss": keras.ops.sum(other(data[0]))}  # as a GAN has two optimizers
        with refused("Keras", way, match="was trained on 2 batches and its optimizer had 0"):
            other.fit(data, **options)

    def test_a_torch_loader(self) -> None:
        """Keras draws a batch before it trains."""
        data = torch.utils.data.TensorDataset(torch.arange(40.0), torch.arange(40.0))

        loader = DataLoader(data, batch_sampler=SRSBatchSampler(data, 4, seed=3))
        with refused("Keras", "a torch `DataLoader`", error=RuntimeError, match="position is unknown"):
            self.model().fit(loader, epochs=1, shuffle=False, verbose=0)


def pooled(workers: int = 0, **options: Any) -> tuple[PooledIterableDataset[int], DataLoader[Any]]:
    data = PooledIterableDataset(
        range(1000), batch_size=10, pool_size=50, steps_per_epoch=10, seed=3, num_workers=workers
    )
    return data, DataLoader(data, batch_size=None, num_workers=workers, **{"collate_fn": list, **options})


def batches_of_pooled(workers: int, epochs: int) -> list[list[int]]:
    found = []
    for epoch in range(epochs):
        data, loader = pooled(workers)
        data.set_epoch(epoch)
        found += list(loader)
    return found


class TestStreams:
    """The adapters accept a `PooledIterableDataset` instead of a sampler."""

    @pytest.mark.parametrize(("workers", "histories"), [(0, 10), (2, 2)])
    def test_accelerate(self, workers: int, histories: int, tmp_path: Path) -> None:
        need("Accelerate")
        from accelerate import Accelerator

        from replenish.integrations.accelerate import prepare

        whole = batches_of_pooled(workers, 4)
        for seed in range(histories):
            seen: list[list[int]] = []
            for stop in sorted(random.Random(seed).sample(range(1, 40), 3)):
                accelerator = Accelerator(cpu=True)
                loader, progress = prepare(accelerator, pooled(workers)[1])
                if seen:
                    accelerator.load_state(str(tmp_path / str(seed)))
                assert progress.step == len(seen)
                while len(seen) < stop:
                    progress.set_epoch(progress.epoch)
                    for batch in loader:
                        seen.append(batch)
                        progress.step += 1
                        if len(seen) == stop:
                            break
                accelerator.save_state(str(tmp_path / str(seed)))
            exact("streams", "Accelerate, `prepare` and `Progress`", seen=seen, whole=whole[: len(seen)])

    def test_a_loop_that_does_not_count(self) -> None:
        data, _ = pooled()
        progress = Progress(data)
        list(data)
        way = "a loop with `Progress` that does not count"
        with refused("streams", way, error=RuntimeError, match="progress is at step 0"):
            next(iter(data))
        assert progress.step == 0

    @pytest.mark.parametrize(("workers", "parts"), [(0, 1), (0, 2), (2, 1)])
    def test_the_hugging_face_trainer(self, workers: int, parts: int, tmp_path: Path) -> None:
        need("Hugging Face Trainer")
        from transformers import Trainer

        from replenish.integrations.transformers import SRSTrainer, StreamPosition

        def collate(items: list[int]) -> dict[str, torch.Tensor]:
            return {"index": torch.tensor(items), "labels": torch.zeros(len(items))}

        def train(resume: Any = None, **options: Any) -> list[list[int]]:
            data, loader = pooled(workers, collate_fn=collate)

            class OverAStream(Trainer):  # type: ignore[misc, unused-ignore]
                def get_train_dataloader(self) -> Any:
                    return loader

            options = {"ignore_data_skip": True, "max_steps": 25 // parts, **options}
            trainer = hugging_face_trainer(
                options.pop("kind", OverAStream), tmp_path, data, options.pop("callbacks", [StreamPosition(data)]),
                gradient_accumulation_steps=parts, **options,
            )  # fmt: skip
            trainer.train(resume_from_checkpoint=resume)
            return trainer.model.seen

        expected = batches_of_pooled(workers, 3)[: 25 // parts * parts]
        assert train(save_steps=2) == expected
        for step in (step for step in (4, 10, 12) if step * parts < len(expected)):
            rest, whole = train(str(tmp_path / f"checkpoint-{step}")), expected[step * parts :]
            exact("streams", "Hugging Face Trainer, `StreamPosition`", seen=rest, whole=whole, where=step)
        if parts == 1 and not workers:
            way = "`StreamPosition` without `ignore_data_skip=True`"
            with refused("streams", way, match="ignore_data_skip should be True"):
                train(ignore_data_skip=False)
            way = "a stream as the dataset of `SRSTrainer`"
            with refused("streams", way, match="DataLoader with IterableDataset"):
                train(kind=SRSTrainer, callbacks=[], ignore_data_skip=False)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_the_lightning_trainer(self, workers: int, tmp_path: Path) -> None:
        need("Lightning Trainer")
        from lightning.pytorch.callbacks import ModelCheckpoint

        keep = ModelCheckpoint(dirpath=tmp_path, save_top_k=-1, filename="{step}", every_n_train_steps=3)
        fit = TestLightning().fit
        data, loader = pooled(workers)
        seen, _ = fit(loader, data, callbacks=[keep], enable_checkpointing=True, max_epochs=3)
        expected = batches_of_pooled(workers, 3)
        assert seen == expected
        for step in (3, 12, 27):
            data, loader = pooled(workers)
            rest, _ = fit(loader, data, checkpoint=tmp_path / f"step={step}.ckpt", max_epochs=3)
            way = "Lightning Trainer, `SamplerCheckpoint(dataset)`, checkpoints every n steps"
            exact("streams", way, seen=rest, whole=expected[step:], where=step)
