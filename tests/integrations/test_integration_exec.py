"""exec and audit --resume with scripts that use a framework, but not replenish."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from contracts import as_lists
from integration_support import SCRIPTS, environment, free_port, joined

from replenish import SequencedReplacement

# ---- exec, on one process and on two ----


def execute(script: str, folder: Path, *arguments: object, torchrun: bool = False, order: str = "srs") -> str:
    launch = ["-m"]
    if torchrun:
        launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}", "-m"]
    words = ["replenish", "exec", f"--order={order}", "--seed=3", str(SCRIPTS / script), str(folder)]
    done = subprocess.run(
        [sys.executable, *launch, *words, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if line.startswith("replenish: "))


def seen(folder: Path, world: int = 1) -> list[list[int]]:
    return joined(json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(world))


def expected(batch_size: int, world: int, last: int) -> list[list[int]]:
    """Return the global batches of two epochs over 101 samples, the last batch of each cut to `last`."""
    steps = -(-101 // batch_size)
    batches = as_lists(SequencedReplacement(101, batch_size, seed=3).batches(0, 2 * steps))
    return [batch[:last] if step % steps == steps - 1 else batch for step, batch in enumerate(batches)]


def filled_up(batches: list[list[int]]) -> list[list[int]]:
    """Pad two epochs of seven global batches like Accelerate, with samples from the start of the epoch."""
    epochs = [[index for batch in batches[start : start + 7] for index in batch] for start in (0, 7)]
    flat = [index for epoch in epochs for index in [*epoch, *epoch[: 112 - len(epoch)]]]
    return [flat[start : start + 16] for start in range(0, 224, 16)]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["exec_lightning.py", "exec_accelerate.py", "exec_transformers.py"])
def test_one_process(script: str, tmp_path: Path) -> None:
    pytest.importorskip(script.removeprefix("exec_").removesuffix(".py"))
    printed = execute(script, tmp_path, *([1] if "lightning" in script else []))
    assert seen(tmp_path) == expected(8, 1, last=5)
    assert "N = 101, B = 8: replaced by srs, seed 3: 2 passes begun (epochs 0 to 1), 0 left early" in printed
    assert printed.count("replaced by") == 1
    assert "never iterated" not in printed


@pytest.mark.slow
def test_lightning_starts_its_processes_itself(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    printed = execute("exec_lightning.py", tmp_path, 2)
    # A DistributedSampler pads to 51 samples per process: six batches of 8 and one of 3.
    assert seen(tmp_path, 2) == expected(16, 2, last=6)
    assert printed.count("N = 101, B = 16 over 2 processes: replaced by srs, seed 3: 2 passes begun") == 1
    assert printed.count("left alone") == 1  # the validation loader


@pytest.mark.slow
@pytest.mark.parametrize("script", ["exec_accelerate.py", "exec_transformers.py"])
def test_accelerate_on_two_processes(script: str, tmp_path: Path) -> None:
    pytest.importorskip(script.removeprefix("exec_").removesuffix(".py"))
    printed = execute(script, tmp_path, torchrun=True)
    assert seen(tmp_path, 2) == filled_up(expected(16, 2, last=5))
    assert printed.count("N = 101, B = 16 over 2 processes: replaced by srs, seed 3: 2 passes begun") == 1


# ---- The table of docs/audit.md: which frameworks resume exactly ----


SCRIPT = Path(__file__).parent / "scripts" / "resumes_with.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "module", "repeats"),
    [("stateful", "torchdata", 0), ("lightning", "lightning", None), ("accelerate", "accelerate", None)],
)
def test_what_a_framework_repeats_after_a_kill(way: str, module: str, repeats: int | None, tmp_path: Path) -> None:
    pytest.importorskip(module)
    words = [sys.executable, "-W", "ignore", "-m", "replenish", "audit", "--json", str(tmp_path / "found.json")]
    resume = f"python -W ignore {SCRIPT} {way} {{checkpoint}}"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*words, "--resume", resume, str(SCRIPT), way], capture_output=True, text=True, check=False, env=environment
    )
    found = json.loads((tmp_path / "found.json").read_text())["findings"] if done.returncode < 2 else []
    assert [each["name"] for each in found] == ["SIGTERM", "SIGKILL"], done.stdout + done.stderr
    for each in found:
        if repeats == 0:
            assert each["level"] == "ok", each
        else:
            assert each["level"] == "fault", each
            assert each["numbers"]["repeats"] > 0
