"""Adapters that wrap a sampler: they reproduce the golden vector, and refuse what cannot work."""

from __future__ import annotations

import doctest
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from integration_support import (
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    SCRIPTS,
    golden_order,
    hugging_face_trainer,
    joined,
    lightning_module,
    run,
    stream,
)
from torch.utils.data import DataLoader, IterableDataset

from replenish import SequencedReplacement
from replenish.torch import Progress, SRSBatchSampler, SRSSampler

STARTS = [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]


@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_accelerate_on_two_processes(start: int, expected: list[list[int]]) -> None:
    accelerate = pytest.importorskip("accelerate", reason="needs accelerate: pip install 'replenish[accelerate]'")
    from replenish.integrations.accelerate import prepare

    shares = []
    for rank in range(2):
        sampler = SRSBatchSampler(range(10), 4, seed=3, num_replicas=2, rank=rank)
        loader = DataLoader(range(10), batch_sampler=sampler, collate_fn=list)
        prepared, progress = prepare(accelerate.Accelerator(cpu=True), loader)
        progress.load_state_dict(sampler.state_dict(start))
        shares.append(list(prepared))
    assert joined(shares)[: len(expected)] == expected


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_torchdata(start: int, expected: list[list[int]], num_workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")
    from replenish.integrations.torchdata import StatefulSampler

    for make, options in [
        (SRSBatchSampler, lambda sampler: {"batch_sampler": sampler}),
        (SRSSampler, lambda sampler: {"sampler": sampler, "batch_size": 4}),
    ]:
        sampler = make(range(10), 4, seed=3)
        sampler.seek(start)
        own = {"num_workers": num_workers, "collate_fn": list, **options(StatefulSampler(sampler))}
        assert list(stateful.StatefulDataLoader(range(10), **own))[: len(expected)] == expected
    three = SRSSampler(range(10), 4, seed=3)
    loader = stateful.StatefulDataLoader(range(10), batch_size=3, sampler=StatefulSampler(three))
    next(iter(loader))
    message = "batch_size should be the sampler's share of a step, .* 3 of 4 samples of step 0"
    with pytest.raises(ValueError, match=message):
        loader.state_dict()


@pytest.mark.filterwarnings("ignore")  # the Trainer warns about workers and logging
@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_lightning(start: int, expected: list[list[int]], tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", minversion="2.5", reason="needs lightning")
    from replenish.integrations.lightning import SamplerCheckpoint

    def made(collate: Any) -> Any:
        sampler = SRSBatchSampler(range(10), 4, seed=3)
        return sampler, DataLoader(range(10), batch_sampler=sampler, collate_fn=collate)

    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    for options in ({"use_distributed_sampler": False}, {}):  # on one process, Fabric replaces no sampler by default
        sampler, loader = made(list)
        Progress(sampler).load_state_dict(sampler.state_dict(start))
        assert list(fabric.setup_dataloaders(loader, **options))[: len(expected)] == expected
    sampler, loader = made(torch.tensor)
    sampler.seek(start)
    module = lightning_module()
    trainer = lightning.Trainer(
        callbacks=[SamplerCheckpoint(sampler)], accelerator="cpu", max_steps=len(expected), logger=False,
        use_distributed_sampler=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, loader)
    assert [batch.tolist() for batch in module.seen] == expected


class TestHuggingFace:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        pytest.importorskip("transformers", reason="needs transformers: pip install 'replenish[transformers]'")

    def test_golden_vector(self, tmp_path: Path) -> None:
        from transformers import TrainerState

        from replenish.integrations.transformers import SRSTrainer

        trainer = hugging_face_trainer(SRSTrainer, tmp_path, 10, max_steps=3)
        trainer.train()
        assert trainer.model.seen == GOLDEN_FIRST
        # A checkpoint that claims step 10**6, the second step of an epoch of 3.
        trainer.save_model(str(tmp_path / "far"))
        TrainerState(global_step=MILLION, train_batch_size=4).save_to_json(str(tmp_path / "far/trainer_state.json"))
        far = hugging_face_trainer(SRSTrainer, tmp_path, 10, max_steps=MILLION + 1)
        far.train(resume_from_checkpoint=str(tmp_path / "far"))
        assert far.model.seen == [GOLDEN_MILLIONTH]

    def test_shares_of_processes(self) -> None:
        from replenish.integrations.transformers import MicroBatches

        ranks = [MicroBatches(golden_order(), 1, 2, rank, lambda: 0) for rank in range(2)]
        assert joined(ranks) == GOLDEN_FIRST
        parts = list(MicroBatches(SequencedReplacement(1000, 40, seed=3), 2, 2, 1, lambda: 0))
        assert parts[:2] == [stream(0, 1)[0][20:30], stream(0, 1)[0][30:40]]
        assert len(parts) == 50

    def test_a_dataset_without_a_length(self, tmp_path: Path) -> None:
        from replenish.integrations.transformers import SRSTrainer

        class Stream(IterableDataset[Any]):
            def __iter__(self) -> Any:
                return iter(())

        with pytest.raises(TypeError, match="train_dataset should have a length, but got a Stream"):
            hugging_face_trainer(SRSTrainer, tmp_path, Stream()).get_train_dataloader()


class TestKeras:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        os.environ.setdefault("KERAS_BACKEND", "torch")
        pytest.importorskip("keras", minversion="3.0", reason="needs Keras 3: pip install 'replenish[keras]'")

    def test_items_are_the_batches(self) -> None:
        from replenish.integrations.keras import OrderDataset, SRSDataset

        data = OrderDataset((np.arange(10),), golden_order(), start=0)
        assert [data[step][0].tolist() for step in range(3)] == GOLDEN_FIRST
        assert data[MILLION][0].tolist() == GOLDEN_MILLIONTH
        assert data[1][0].tolist() == GOLDEN_FIRST[1], "items may be read in any order"
        assert SRSDataset((np.arange(10),), 4, seed=3, start=MILLION)[0][0].tolist() == GOLDEN_MILLIONTH
        by_function = OrderDataset(lambda indices: (indices, -indices), golden_order(), start=0)
        assert [part.tolist() for part in by_function[MILLION]] == [GOLDEN_MILLIONTH, [-i for i in GOLDEN_MILLIONTH]]
        assert (data.num_batches, data.steps_per_epoch) == (None, 3)

    def test_wrong_arguments_are_named(self) -> None:
        from replenish.integrations.keras import OrderDataset

        for options in ({"workers": 2}, {"use_multiprocessing": True}):
            with pytest.raises(ValueError, match="workers should be at most 1"):
                OrderDataset((np.arange(10),), golden_order(), **options)
        with pytest.raises(ValueError, match="data should be arrays of 10 rows, the samples .*, but got one of 9"):
            OrderDataset((np.arange(10), np.arange(9)), golden_order())
        with pytest.raises(ValueError, match="start should be at least 0, but got -1"):
            OrderDataset((np.arange(10),), golden_order(), start=-1)

    def test_docstrings(self) -> None:
        from replenish.integrations import keras

        assert doctest.testmod(keras).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "kind", "devices", "expected"),
    [
        ("trainer", "SRSBatchSampler", 1, "exact"),
        ("fabric", "SRSBatchSampler", 2, "use_distributed_sampler=False"),
        ("trainer", "SRSBatchSampler", 2, "use_distributed_sampler=False"),
        ("fabric", "SRSSampler", 2, "exact"),
        ("trainer", "SRSSampler", 2, "exact"),
    ],
)
def test_lightnings_default_flag(what: str, kind: str, devices: int, expected: str, tmp_path: Path) -> None:
    """On several processes, a batch sampler is refused with advice, and an index sampler works."""
    pytest.importorskip("lightning")
    run(SCRIPTS / "lightning_default_flag.py", what, kind, tmp_path, "--devices", devices)
    found = [file.read_text() for file in sorted(tmp_path.glob("result*.txt"))]
    assert len(found) == devices
    if expected == "exact":
        assert found == ["exact"] * devices
    else:
        assert all(line.startswith(("TypeError", "ValueError")) and expected in line for line in found)
