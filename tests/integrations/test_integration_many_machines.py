"""Several machines, as far as one can show it: two torchrun agents that meet, and SLURM's variables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from integration_support import EXAMPLES, check_log, environment, free_port


def finish(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        output, _ = process.communicate(timeout=200)
        assert process.returncode == 0, output


def start(command: list[object], **variables: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment(**variables),
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_two_agents_of_torchrun(tmp_path: Path) -> None:
    port = free_port()
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=7"]
    agent = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", *rendezvous]
    finish([start([*agent, EXAMPLES / "train_ddp.py", tmp_path, "--until", 33]) for _ in range(2)])
    check_log(tmp_path, 0, 33)


@pytest.mark.slow
def test_the_variables_of_slurm(tmp_path: Path) -> None:
    """As the page's script sets them: srun starts one process a rank, which takes its number from SLURM."""
    line = 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS; exec "$@"'
    page = Path(__file__).parent.parent.parent / "docs" / "integrations" / "many_machines.md"
    assert line in page.read_text()
    port = str(free_port())
    ranks = []
    for rank in range(2):
        slurm = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": "2"}
        command = ["bash", "-c", line, "task", sys.executable, EXAMPLES / "train_ddp.py", tmp_path, "--until", 12]
        ranks.append(
            subprocess.Popen(
                list(map(str, command)),
                env=environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **slurm),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    finish(ranks)
    check_log(tmp_path, 0, 12)
