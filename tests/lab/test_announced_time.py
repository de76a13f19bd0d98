"""The time that `compare` announces: of all runs that are left, their start included, and near to what runs took."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from replenish.cli import app
from replenish.lab.comparing.data import PlannedComparison
from replenish.lab.config import RunConfig
from replenish.lab.experiments.costs import known_data, run_cost
from replenish.lab.runs import read_runs

RESULTS = Path(__file__).parents[2] / "results"


def minutes(tmp_path: Path, *options: str) -> float:
    """What is announced for a comparison that is stopped before its first run."""

    def stop(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    words = ["compare", "digits", "--orders", "reshuffling,srs", "--runs", str(tmp_path), *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlannedComparison, "run", stop)
        said = CliRunner().invoke(app, words).output
    found = re.search(r"about ([0-9.,]+) (min|h) in all", said)
    assert found is not None, said
    return float(found[1].replace(",", "")) * {"min": 1, "h": 60}[found[2]]


def test_every_run_has_to_start_and_those_at_once_take_the_time_of_one(tmp_path: Path) -> None:
    """Short runs take longer to start than to train: 48 of them, which train for half a second, are no minute."""
    one_by_one = minutes(tmp_path, "--epochs", "1", "--seeds", "24")
    assert 4 <= one_by_one <= 6
    assert minutes(tmp_path, "--epochs", "1", "--seeds", "24", "--jobs", "2") == pytest.approx(one_by_one / 2, abs=1)
    assert minutes(tmp_path, "--epochs", "100", "--seeds", "24") > 3 * one_by_one
    assert minutes(tmp_path, "--epochs", "4000", "--seeds", "24") > 120


def test_what_is_announced_for_a_run_is_near_to_what_the_committed_runs_took() -> None:
    """They ran beside others, some at a tenth of the speed: the quickest of each config says what it takes."""
    quickest: dict[RunConfig, float] = {}
    for record in read_runs(RESULTS):
        if record.status == "finished" and record.result is not None:
            config = record.config.with_seed(0)
            quickest[config] = min(record.result["seconds"], quickest.get(config, math.inf))
    assert len(quickest) >= 7
    for config, seconds in quickest.items():
        announced = run_cost(config, known_data(config)).cpu_hours * 3600
        assert announced / 2 < seconds < 6 * announced, config
