"""Every stack, killed for real: SIGKILL at random steps, a new process goes on, on the batches of one run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from integration_support import SCRIPTS, environment

HISTORIES = 6
STACKS = {
    "pytorch": "torch",
    "lightning": "lightning",
    "transformers": "transformers",
    "accelerate": "accelerate",
    "torchdata": "torchdata.stateful_dataloader",
    "keras": "keras",
    "streams": "torchdata.stateful_dataloader",
}


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_kill_minus_nine(stack: str) -> None:
    pytest.importorskip(STACKS[stack], reason=f"needs {stack}")
    command = [sys.executable, "-W", "ignore", str(SCRIPTS / "kill_histories.py"), stack, str(HISTORIES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["histories"] == HISTORIES
    assert counts["kills"] >= HISTORIES  # most are killed several times
