"""Shared by the tests of the integrations: the golden vector, models that record their batches, running scripts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from contracts import as_lists
from golden_vectors import GOLDEN

from replenish import SequencedReplacement

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "integrations"
SCRIPTS = Path(__file__).parent / "scripts"

# Every adapter must reproduce this golden vector: 10 samples, batches of 4, seed 3.
GOLDEN_FIRST, GOLDEN_MILLIONTH = (GOLDEN["orders"]["srs"][name] for name in ("first_batches", "batch_at_a_million"))
MILLION = 10**6


def golden_order() -> SequencedReplacement:
    return SequencedReplacement(10, 4, seed=3)


def stream(start: int, stop: int) -> list[list[int]]:
    """Return steps of the stream of all examples: 1,000 samples, batches of 40, seed 3, 25 steps per epoch."""
    return as_lists(SequencedReplacement(1000, 40, seed=3).batches(start, stop))


def lightning_module() -> Any:
    """Return a Lightning module that keeps its training batches."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))
            self.seen: list[Any] = []

        def training_step(self, batch: Any) -> Any:
            self.seen.append(batch)
            return self.weight * 1.0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    return Module()


def hugging_face_trainer(kind: Any, folder: Path, data: Any = 40, callbacks: Any = (), **options: Any) -> Any:
    """Return a Trainer over `data` (a dataset, or a number of rows) whose model keeps its training batches."""
    from transformers import TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))
            self.seen: list[list[int]] = []

        def forward(self, index: torch.Tensor, labels: torch.Tensor) -> Any:
            if self.training:
                self.seen.append(index.tolist())
            return {"loss": self.weight + labels.sum()}

    defaults = {
        "data_seed": 3, "use_cpu": True, "report_to": "none", "disable_tqdm": True, "dataloader_pin_memory": False,
        "logging_strategy": "no", "save_strategy": "no", "per_device_train_batch_size": 4, "max_steps": 22,
    }  # fmt: skip
    if "save_steps" in options:
        defaults["save_strategy"] = "steps"
    arguments = TrainingArguments(output_dir=str(folder), **{**defaults, **options})
    if isinstance(data, int):
        data = [{"index": torch.tensor(number), "labels": torch.tensor(0)} for number in range(data)]
    return kind(model=Model(), args=arguments, train_dataset=data, callbacks=list(callbacks))


def joined(shares: Iterable[Iterable[list[int]]]) -> list[list[int]]:
    """Return the global batches, joined from the shares of all ranks."""
    return [list(chain.from_iterable(parts)) for parts in zip(*shares, strict=True)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**extra: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    return {**inherited, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", **extra}


def run(script: Path, *arguments: object, processes: int | None = None) -> str:
    """Run a script, under torchrun if the number of processes is given."""
    command = [sys.executable]
    if processes is not None:
        command += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", f"--master-port={free_port()}"]
    command += [str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def take_log(folder: Path) -> dict[int, list[int]]:
    """Return the samples of each step since the last call, over all ranks, without steps that a kill cut off."""
    ranks = []
    for file in sorted(folder.glob("rank*.jsonl"), key=lambda path: int(path.stem[4:])):
        lines = [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        file.unlink()
        steps: dict[int, list[int]] = {}
        for step, indices in map(json.loads, lines):
            steps.setdefault(step, []).extend(indices)
        ranks.append(steps)
    common = sorted(set.intersection(*map(set, ranks))) if ranks else []
    return {step: [index for steps in ranks for index in steps[step]] for step in common}


def check_log(folder: Path, start: int, stop: int) -> None:
    """Check that the log has the steps from `start` to `stop`, with the samples of the stream."""
    log = take_log(folder)
    assert list(log) == list(range(start, stop))
    assert list(log.values()) == stream(start, stop)
