"""What the README and the docs say of results is what the records in results/ say."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from replenish.lab.experiments import SCALES, configs, listing
from replenish.lab.report import make_report, read_runs

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def findings() -> dict[str, Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return runpy.run_path(str(ROOT / "benchmarks" / "findings.py"))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_the_pages_hold_what_the_records_say(findings: dict[str, Any]) -> None:
    table, said = findings["table3"](findings["groups"](RESULTS)), findings["sentences"](RESULTS)
    again = "run `python benchmarks/findings.py`"
    readme, page = (ROOT / "README.md").read_text(), (ROOT / "docs" / "what_we_found.md").read_text()
    assert table in readme, again
    assert said[0] in readme, again
    assert table in page, again
    assert len(said) == 5
    assert all(sentence in page for sentence in said), again


def test_the_report_is_that_of_the_records() -> None:
    report = make_report(read_runs(RESULTS), {scale: configs(scale) for scale in SCALES})
    assert report.html == (RESULTS / "report.html").read_text()
    assert report.markdown == (RESULTS / "report.md").read_text()


def test_the_records_are_whole() -> None:
    """Five seeds of every row of table 3, all of one commit, on the real data, and none still under way."""
    results = {path.parent: json.loads(path.read_text()) for path in RESULTS.rglob("result.json")}
    assert {path.parent for path in RESULTS.rglob("config.json")} == set(results)
    assert not list(RESULTS.rglob("*.pt"))
    for name, config in configs("mini").items():
        if name.startswith("table3/"):
            folders = [folder for folder in results if folder.parent.name == config.slug]
            assert sorted(folder.name for folder in folders) == [f"seed{seed}" for seed in range(5)]
    for folder, result in results.items():
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == result["epochs"]
        assert result["data"]["train_images"] == 10_000
        assert not result["commit"].endswith("-dirty")
    assert len({result["data"]["fingerprint"] for result in results.values()}) == 1


@pytest.mark.slow
def test_the_page_on_reproducing_lists_every_experiment() -> None:
    page = (ROOT / "docs" / "reproducing.md").read_text()
    for line in listing.markdown(listing.listed("full")).splitlines():
        assert line in page, "take the tables from `replenish list --markdown`"
    mini = [line for line in listing.markdown(listing.listed("mini")).splitlines() if line.startswith("| table3/")]
    assert len(mini) == 4
    assert all(line in page for line in mini)
