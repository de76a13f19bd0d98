"""What docs/noise_on_a_network.md says came out, and its picture, is what the records in results/noise say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from study.noise import page
from study.noise.results import Results, read_results
from study.noise.setting import EXPERIMENTS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results() -> Results | None:
    folder = ROOT / "results" / "noise"
    return read_results(folder, "noise/digits") if folder.exists() else None


def test_the_page_and_the_picture_are_those_of_the_records(results: Results | None) -> None:
    content = (ROOT / page.PAGE).read_text()
    (written,) = re.findall(r"<!-- begin: noise -->\n\n(.*?)\n\n<!-- end: noise -->", content, flags=re.DOTALL)
    if results is None:
        assert written == "Nothing yet."
        return
    assert written == page.text(results), "run `python -m study pages`"
    assert (ROOT / page.PICTURE).read_text() == page.picture(results)


def test_the_records_are_of_the_experiment_as_it_was_stated(results: Results | None) -> None:
    if results is None:
        return
    assert results.setting == EXPERIMENTS["noise/digits"].config()
    assert len(results.records) >= 3
    assert len({record["commit"] for record in results.records.values()}) == 1
    assert all(record["plateau"]["gradient"] < 1e-6 for record in results.records.values())
