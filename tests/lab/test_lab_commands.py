"""`replenish report` and `demo`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replenish.cli import app
from replenish.cli.demo import recorded_errors
from replenish.lab.experiments import SCALES, digits


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yield the folder and the output of `demo`, with four of its forty epochs."""
    runs = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCALES, "digits", lambda config: digits(config).for_epochs(4))
        code, output = invoke("demo", "--seeds", "1", "--jobs", "1", "--runs", str(runs))
        assert code == 0, output
        yield runs, output


@pytest.mark.slow
def test_demo_prints_its_verdicts_and_writes_a_report(demonstration: tuple[Path, str]) -> None:
    runs, output = demonstration
    assert "1 seed says: " in " ".join(output.split())
    assert "from the record that comes with this package: SRS and reshuffling" in " ".join(output.split())
    assert "Three seeds can lie to you." in output
    assert (runs / "report.html").stat().st_size > 10_000
    assert str(runs / "report.html") in output.replace("\n", "")
    assert len(list(runs.rglob("result.json"))) == 2


def test_the_record_of_the_demonstration_is_complete_and_from_one_commit() -> None:
    srs, reshuffling = recorded_errors()
    assert list(srs) == list(reshuffling) == list(range(len(srs)))
    assert len(srs) >= 40
    lines = resources.files("replenish.lab.experiments").joinpath("demo_runs.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert len(runs) == len({(run["experiment"], run["seed"]) for run in runs}) == 2 * len(srs)
    assert {run["status"] for run in runs} == {"finished"}
    assert len({(run["commit"], run["command"]) for run in runs}) == 1


@pytest.mark.slow
def test_report_writes_to_the_file_in_out(demonstration: tuple[Path, str], tmp_path: Path) -> None:
    runs, _ = demonstration
    code, _ = invoke("report", str(runs), "--out", str(tmp_path / "mine.html"))
    assert code == 0
    assert (tmp_path / "mine.html").exists()
    assert (tmp_path / "mine.md").exists()
    assert (tmp_path / "mine.html").read_bytes().replace(b"mine.md", b"report.md") == (
        runs / "report.html"
    ).read_bytes()


def test_report_without_runs_is_refused(tmp_path: Path) -> None:
    code, output = invoke("report", str(tmp_path), "--out", "page.txt")
    assert (code, "--out should be a file name that ends in .html, but got 'page.txt'" in output) == (2, True)
    code, output = invoke("report", str(tmp_path))
    assert code == 2
    assert "there are no runs in" in output
    code, output = invoke("report", str(tmp_path / "absent"))
    assert code == 2
    assert "there is no directory" in output
    assert not list(tmp_path.iterdir())
