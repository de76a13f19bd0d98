"""Ray Train on this machine: workers are real processes, and a run goes on with another number of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration_support import EXAMPLES, check_log, run

pytest.importorskip("ray", reason="Ray is not installed: pip install 'replenish[ray]'")


@pytest.mark.slow
def test_resume_with_another_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent from a test
    run(EXAMPLES / "train_ray.py", tmp_path, "--until", 7)
    check_log(tmp_path, 0, 7)
    run(EXAMPLES / "train_ray.py", tmp_path, "--until", 33, "--workers", 2)
    check_log(tmp_path, 7, 33)
