"""What docs/noise_on_a_network.md says came out, and its picture, is what the records in results/noise say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from replenish.lab.noise.results import Results, read_results
from replenish.lab.noise.setting import EXPERIMENTS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks" / "noise.py"))


@pytest.fixture
def results() -> Results | None:
    folder = ROOT / "results" / "noise"
    return read_results(folder, "noise/digits") if folder.exists() else None


def test_the_page_and_the_picture_are_those_of_the_records(command: dict[str, Any], results: Results | None) -> None:
    page = (ROOT / command["PAGE"]).read_text()
    (told,) = re.findall(r"<!-- begin: noise -->\n\n(.*?)\n\n<!-- end: noise -->", page, flags=re.DOTALL)
    if results is None:
        assert told == "Nothing yet."
        return
    assert told == command["text"](results), "run `python benchmarks/noise.py`"
    assert (ROOT / command["PICTURE"]).read_text() == command["picture"](results)


def test_the_records_are_of_the_experiment_as_it_was_stated(results: Results | None) -> None:
    if results is None:
        return
    assert results.setting == EXPERIMENTS["noise/digits"].config()
    assert len(results.records) >= 3
    assert len({record["commit"] for record in results.records.values()}) == 1
    assert all(record["plateau"]["gradient"] < 1e-6 for record in results.records.values())
