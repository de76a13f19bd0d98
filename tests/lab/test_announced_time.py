"""The time that `compare` announces: for all remaining runs and their starts, and close to measured times."""

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
    """Return the announced time of a comparison, which is stopped before its first run."""

    def stop(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    words = ["compare", "digits", "--orders", "reshuffling,srs", "--runs", str(tmp_path), *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlannedComparison, "run", stop)
        printed = CliRunner().invoke(app, words).output
    found = re.search(r"about ([0-9.,]+) (min|h) in all", printed)
    assert found is not None, printed
    return float(found[1].replace(",", "")) * {"min": 1, "h": 60}[found[2]]


def test_the_time_includes_starts_and_parallel_runs_share_it(tmp_path: Path) -> None:
    """Short runs take longer to start than to train. These 48 train for half a second each, but take minutes."""
    one_by_one = minutes(tmp_path, "--epochs", "1", "--seeds", "24")
    assert 4 <= one_by_one <= 6
    assert minutes(tmp_path, "--epochs", "1", "--seeds", "24", "--jobs", "2") == pytest.approx(one_by_one / 2, abs=1)
    assert minutes(tmp_path, "--epochs", "100", "--seeds", "24") > 3 * one_by_one
    assert minutes(tmp_path, "--epochs", "4000", "--seeds", "24") > 120


def test_the_announced_time_of_a_run_is_close_to_the_committed_runs() -> None:
    """The committed runs shared the machine with others, so the quickest run of each config counts."""
    quickest: dict[RunConfig, float] = {}
    for record in read_runs(RESULTS):
        if record.status == "finished" and record.result is not None:
            config = record.config.with_seed(0)
            quickest[config] = min(record.result["seconds"], quickest.get(config, math.inf))
    assert len(quickest) >= 7
    for config, seconds in quickest.items():
        announced = run_cost(config, known_data(config)).cpu_hours * 3600
        assert announced / 2 < seconds < 6 * announced, config
