"""`replenish bench` prints a table of the right shape. No test checks how fast anything is."""

from __future__ import annotations

import json

import pytest
import torch
from typer import Typer
from typer.testing import CliRunner

from replenish.cli.bench import bench
from replenish.lab.sampler_benchmark import WAYS, alternately, one_epoch, torch_batches

app = Typer()
app.command()(bench)


@pytest.fixture(autouse=True)
def _threads_as_they_were():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_the_table_and_the_machine() -> None:
    done = CliRunner().invoke(app, ["--n", "500", "--batch-size", "20", "--rounds", "2"])
    assert done.exit_code == 0, done.stderr
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if line.startswith("│")
    ]
    assert [name for name, *_ in rows] == list(WAYS.values())
    assert all(each.endswith(" ns") for _, each, _ in rows)
    assert rows[0][2] == ""
    assert all("x (" in speed for *_, speed in rows[1:])
    machine = done.stdout.splitlines()[-1]
    assert machine.startswith("N = 500, B = 20; medians of 2 rounds, quartiles in brackets. ")
    assert f"torch {torch.__version__}" in machine


def test_json() -> None:
    done = CliRunner().invoke(app, ["--n", "500", "--batch-size", "20", "--rounds", "3", "--json"])
    found = json.loads(done.stdout)
    assert (found["num_samples"], found["batch_size"], found["rounds"]) == (500, 20, 3)
    assert list(found["ways"]) == list(WAYS)
    assert found["ways"]["torch"]["speed_over_torch"] is None
    for name, way in found["ways"].items():
        assert len(way["seconds"]) == 3
        assert way["nanoseconds_per_index"] == pytest.approx(sorted(way["seconds"])[1] / 500 * 1e9)
        if name != "torch":
            speed = way["speed_over_torch"]
            assert speed["low"] <= speed["median"] <= speed["high"]
    assert found["machine"]["cores"] >= 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--n", "0"], "replenish: --n should be at least 1, but got 0\n"),
        (["--n", "10"], "replenish: batch_size should be at most 10, but got 64\n"),
        (["--batch-size", "0"], "replenish: --batch-size should be at least 1, but got 0\n"),
        (["--rounds", "1"], "replenish: --rounds should be at least 2, but got 1\n"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stderr, done.stdout) == (2, sentence, "")


def test_every_way_goes_through_the_whole_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(
        "replenish.lab.sampler_benchmark.exhaust", lambda batches: drawn.append(sum(len(batch) for batch in batches))
    )
    ways = one_epoch(100, 10, rounds=2)
    assert set(ways) == set(WAYS)
    for run in ways.values():
        run()
    assert drawn == [100] * len(WAYS)
    assert sorted(index for batch in torch_batches(100, 30) for index in batch) == list(range(100))


def test_runs_alternate_and_the_first_round_does_not_count() -> None:
    calls: list[str] = []
    times = alternately(2, a=lambda: calls.append("a"), b=lambda: calls.append("b"))
    assert calls == ["a", "b"] * 3
    assert [len(values) for values in times.values()] == [2, 2]
