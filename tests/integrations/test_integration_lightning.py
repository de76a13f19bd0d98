"""Lightning's Fabric and Trainer: exact without their distributed sampler, a clear error with it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lightning", minversion="2.5", reason="needs lightning: pip install 'replenish[lightning]'")

import lightning
import torch
from integration_support import (
    EXAMPLES,
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    SCRIPTS,
    check_log,
    run,
)
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

from replenish.integrations.lightning import SamplerCheckpoint
from replenish.torch import Progress, SRSBatchSampler

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")


def test_golden_vector_through_fabric() -> None:
    fabric = Fabric(accelerator="cpu", devices=1)
    for start, expected in [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])]:
        sampler = SRSBatchSampler(range(10), 4, seed=3)
        loader = DataLoader(range(10), batch_sampler=sampler, collate_fn=list)
        progress = Progress(sampler)
        for options in ({"use_distributed_sampler": False}, {}):  # on one process nothing is replaced by default either
            progress.load_state_dict(SRSBatchSampler(range(10), 4, seed=3).state_dict(start))
            prepared = fabric.setup_dataloaders(loader, **options)
            assert list(prepared)[: len(expected)] == expected


class Recorder(lightning.LightningModule):
    """A module that trains nothing to speak of, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[int]] = []
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def training_step(self, batch: torch.Tensor) -> torch.Tensor:
        self.seen.append(batch.tolist())
        return self.weight * 1.0

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore")  # the Trainer has advice about workers and logging
@pytest.mark.parametrize(("start", "expected"), [(0, GOLDEN_FIRST), (MILLION, [GOLDEN_MILLIONTH])])
def test_golden_vector_through_the_trainer(start: int, expected: list[list[int]], tmp_path: Path) -> None:
    sampler = SRSBatchSampler(range(10), 4, seed=3)
    sampler.seek(start)
    loader = DataLoader(range(10), batch_sampler=sampler, collate_fn=torch.tensor)
    module = Recorder()
    trainer = lightning.Trainer(
        callbacks=[SamplerCheckpoint(sampler)],
        accelerator="cpu",
        max_steps=len(expected),
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, loader)
    assert module.seen == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "launches"),
    [("train_fabric.py", [(2, 7), (1, 33)]), ("train_lightning.py", [(1, 7), (2, 33), (1, 60)])],
)
def test_resume_within_epochs_on_1_and_2_processes(
    example: str, launches: list[tuple[int, int]], tmp_path: Path
) -> None:
    stop = 0
    for devices, until in launches:
        run(EXAMPLES / example, tmp_path, "--until", until, "--devices", devices)
        check_log(tmp_path, stop, until)
        stop = until


def results(folder: Path, what: str, kind: str, devices: int) -> list[str]:
    run(SCRIPTS / "lightning_default_flag.py", what, kind, folder, "--devices", devices)
    return [file.read_text() for file in sorted(folder.glob("result*.txt"))]


class TestTheDefaultFlag:
    @pytest.mark.slow
    def test_on_one_process_nothing_is_replaced(self, tmp_path: Path) -> None:
        assert results(tmp_path, "trainer", "SRSBatchSampler", 1) == ["exact"]

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ["fabric", "trainer"])
    def test_on_two_a_batch_sampler_says_what_to_do(self, what: str, tmp_path: Path) -> None:
        said = results(tmp_path, what, "SRSBatchSampler", 2)
        assert len(said) == 2
        assert all(
            line.startswith(("TypeError", "ValueError")) and "use_distributed_sampler=False" in line for line in said
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("what", ["fabric", "trainer"])
    def test_on_two_an_index_sampler_is_left_alone(self, what: str, tmp_path: Path) -> None:
        assert results(tmp_path, what, "SRSSampler", 2) == ["exact", "exact"]
