"""The command as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import replenish
from replenish import SequencedReplacement
from replenish.cli import app
from replenish.cli.options import parse_seeds
from replenish.diagnostics import measure


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == replenish.__version__
    for arguments in ((), ("--help",), ("list", "--help"), ("data", "--help")):
        assert "Usage: replenish" in (run(*arguments).stdout + run(*arguments).stderr)


def test_list_models() -> None:
    shown = run("list", "models")
    assert shown.returncode == 0
    assert "wrn-70-10" in shown.stdout
    assert "differs: we count 104.2M or 104.3M" in shown.stdout


def test_count() -> None:
    """The paper's counts: exact where they can be read, a power of ten otherwise, and the ratio."""
    small = run("count", "5", "2").stdout.split("\n")
    assert [line.split()[-1] for line in small[:3]] == ["13", "30", "2.308"]
    large = run("count", "50000", "64", "--epochs", "200").stdout
    assert "1.027e+215" in large
    assert "6.410e+216" in large
    assert "62.39" in large


def test_inspect(tmp_path: Path) -> None:
    """The table is plain text, wide enough; the picture and the page are drawn, both in one run."""
    page = tmp_path / "orders.html"
    done = run("inspect", "2000", "20", "--epochs", "12", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.split("\n") if "│" in line]
    rows = {label: cells for label, *cells in lines}
    law, srs, reshuffling, replacement = rows["unseen in epoch 12"]
    assert law == "~ 27.92 %"  # the limit of many small steps
    found = measure(SequencedReplacement(2000, 20), 12)
    assert srs == f"{100 * found.unseen[-1]:.2f} %"
    assert reshuffling == "0.00 %"
    assert abs(float(replacement.split()[0]) - 36.6) < 4.5
    assert rows["draws of a sample in 12 epochs"][1] == f"{found.counts.min()} to {found.counts.max()}"
    assert (
        f"replenish inspect 2000 20 --pool-size 2000 --epochs 12 --classes 10 --seed 0 --html {page}"
        in page.read_text()
    )
    assert sorted(tmp_path.iterdir()) == [page]  # nothing temporary is left


@pytest.mark.parametrize(
    "arguments",
    [
        ("count", "5", "0"),
        ("count", "five", "2"),
        ("inspect", "10", "20"),
        ("inspect", "10", "2", "--html", "no/such/folder/x.html"),
        ("inspect", "10", "2", "--html", "page.png"),
        ("lst",),
        ("data", "get", "mnist"),
        ("--what",),
    ],
)
def test_bad_input_is_exit_code_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_without_the_labs_packages() -> None:
    blocked = 'import sys; sys.modules["typer"] = None\nimport replenish.cli\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "replenish: the command needs typer and rich: pip install 'replenish[cli]'"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("1", [0]), ("5", [0, 1, 2, 3, 4]), (" 2 , 1 ", [2, 1]), ("0,9223372036854775807", [0, 2**63 - 1])],
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


def test_seeds_that_are_no_seeds() -> None:
    for text in ("", "0", "-1", "1.5", "1,", "1,1", "²", "٣", "10001", "0,9223372036854775808", "9" * 5000):
        with pytest.raises(ValueError, match="seed"):
            parse_seeds(text)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("count 100 10", {"ratio"}),
        ("inspect 200 10 --epochs 2", {"draws"}),
        ("data verify --root .", {"data", "state", "where"}),
        ("list --scale digits", {"experiment", "network", "order"}),
    ],
)
def test_json_from_every_command_that_prints_results(
    words: str, known: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLENISH_DATA", raising=False)
    done = CliRunner().invoke(app, [*words.split(), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert known <= set(found if isinstance(found, dict) else found[0]), list(found)
