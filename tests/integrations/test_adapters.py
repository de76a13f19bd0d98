"""Adapters that wrap a sampler: the golden vector comes through, and what cannot work is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from integration_support import GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, SCRIPTS, joined, run
from torch.utils.data import DataLoader

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


@pytest.mark.filterwarnings("ignore")  # the Trainer has advice about workers and logging
@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_lightning(start: int, expected: list[list[int]], tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", minversion="2.5", reason="needs lightning")
    from replenish.integrations.lightning import SamplerCheckpoint

    class Recorder(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[list[int]] = []
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def training_step(self, batch: torch.Tensor) -> torch.Tensor:
            self.seen.append(batch.tolist())
            return self.weight * 1.0

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def made(collate: Any) -> Any:
        sampler = SRSBatchSampler(range(10), 4, seed=3)
        return sampler, DataLoader(range(10), batch_sampler=sampler, collate_fn=collate)

    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    for options in ({"use_distributed_sampler": False}, {}):  # on one process nothing is replaced by default either
        sampler, loader = made(list)
        Progress(sampler).load_state_dict(sampler.state_dict(start))
        assert list(fabric.setup_dataloaders(loader, **options))[: len(expected)] == expected
    sampler, loader = made(torch.tensor)
    sampler.seek(start)
    module = Recorder()
    trainer = lightning.Trainer(
        callbacks=[SamplerCheckpoint(sampler)], accelerator="cpu", max_steps=len(expected), logger=False,
        use_distributed_sampler=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, loader)
    assert module.seen == expected


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
    """A batch sampler on several processes is refused with what to do; an index sampler is left alone."""
    pytest.importorskip("lightning")
    run(SCRIPTS / "lightning_default_flag.py", what, kind, tmp_path, "--devices", devices)
    found = [file.read_text() for file in sorted(tmp_path.glob("result*.txt"))]
    assert len(found) == devices
    if expected == "exact":
        assert found == ["exact"] * devices
    else:
        assert all(line.startswith(("TypeError", "ValueError")) and expected in line for line in found)
