"""The table of docs/audit.md: which frameworks resume exactly, as `replenish audit --resume` finds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
