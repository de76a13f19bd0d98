"""`replenish what` and `replenish when`: from a run's folder, a saved state, or an order's name and sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from replenish import Jitter, Mixture, RandomReshuffling, SequencedReplacement, Skipping, state
from replenish.cli import app
from replenish.lab import RunConfig
from replenish.lab.data import load
from replenish.lab.runs import RunFolder
from replenish.torch import SRSBatchSampler

SRS = ("--order", "srs", "-N", "1000", "-B", "10", "--seed", "3")


def asked(*words: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def test_a_mixture_names_the_dataset(tmp_path: Path) -> None:
    by_hand, saved = tmp_path / "mix.json", tmp_path / "state.json"
    by_hand.write_text(json.dumps({"order": "Mixture", "sizes": [900, 100], "weights": [3, 1], "batch_size": 8}))
    mixture = Mixture([900, 100], [3, 1], 8)
    told = asked("what", 7, by_hand)
    sources, indices = mixture.locate(mixture.batch(7))
    assert [(each["dataset"], each["index"]) for each in told["samples"]] == list(
        zip(sources.tolist(), indices.tolist(), strict=True)
    )
    skipping = Skipping(mixture, [(5, 9)])
    saved.write_text(json.dumps(state.save(skipping, 20)))
    assert samples(asked("what", 7, saved)) == mixture.batch(11).tolist()
    told = asked("when", 918, saved)
    assert (told["dataset"], told["index"], told["stop"]) == (1, 18, 20)
    assert told["steps"] == [step for step in range(20) if 918 in skipping.batch(step)]
    shown = CliRunner().invoke(app, ["when", "918", str(saved)])
    assert "Sample 918 (dataset 1, sample 18)" in shown.output
    by_hand.write_text(json.dumps({"order": "Mixture", "sizes": [900, 100], "batch_size": 8}))
    assert "weights should be in the config of a Mixture, but is missing" in refused("what", 7, by_hand)


def samples(told: dict[str, Any]) -> list[int]:
    return [sample["sample"] for sample in told["samples"]]


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, RunConfig]:
    config = RunConfig(dataset="digits", images_per_class=10, order="reshuffling", batch_size=9, epochs=4, seed=2)
    RunFolder(tmp_path / "run").claim(config)
    return tmp_path / "run", config


def test_the_commands_as_a_user_types_them() -> None:
    command = [sys.executable, "-m", "replenish"]
    order = SequencedReplacement(1000, 10, seed=3)
    shown = subprocess.run([*command, "what", "31415", *SRS, "--visits"], capture_output=True, text=True, check=True)
    assert all(f" {sample} " in shown.stdout for sample in order.batch(31415).tolist())
    assert "Step 31,415" in shown.stdout
    shown = subprocess.run([*command, "when", "271", *SRS, "--stop", "500"], capture_output=True, text=True, check=True)
    assert f" {next(step for step, batch in enumerate(order.batches()) if 271 in batch)} " in shown.stdout
    wrong = subprocess.run([*command, "when", "1000", *SRS], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr) == (2, "replenish: sample should be at most 999, but got 1000\n")


@pytest.mark.parametrize(("command", "named"), [("what", "step"), ("when", "sample")])
def test_a_negative_number_is_no_option(command: str, named: str) -> None:
    assert refused(command, -5, *SRS) == f"replenish: {named} should be at least 0, but got -5"


@pytest.mark.parametrize("name", ["order.json", "config.json"])
def test_an_order_by_its_config(tmp_path: Path, name: str) -> None:
    order = Jitter(1000, 10, shard_size=50, seed=4)
    (tmp_path / name).write_text(json.dumps(order.config()))
    assert samples(asked("what", 777, tmp_path / name)) == order.batch(777).tolist()
    seen = asked("when", 7, tmp_path / name)
    assert (seen["stop"], len(seen["steps"])) == (100, 1)  # nothing is known: an effective epoch
    both = {"config": order.config(), "sampler": state.save(order, 300)}  # the state knows more
    (tmp_path / name).write_text(json.dumps(both))
    assert asked("when", 7, tmp_path / name)["stop"] == 300


def test_an_order_by_its_name() -> None:
    order = SequencedReplacement(1000, 10, seed=3, pool_size=50)
    told = asked("what", 777, *SRS, "--option", "pool_size=50", "--visits")
    assert samples(told) == order.batch(777).tolist()
    assert [sample["visits"] for sample in told["samples"]] == order.visits(777).tolist()
    assert told["order"] == order.config()
    seen = asked("when", 5, *SRS, "--option", "pool_size=50", "--start", 300)
    assert seen["steps"] == [300 + k for k, batch in enumerate(order.batches(300, 400)) if 5 in batch]
    assert (seen["start"], seen["stop"]) == (300, 400)


def test_a_run_with_its_labels(run: tuple[Path, RunConfig]) -> None:
    folder, config = run
    digits = load("digits", images_per_class=10)
    told = asked("what", 25, folder)
    assert samples(told) == config.build_order(100).batch(25).tolist()
    assert [sample["label"] for sample in told["samples"]] == digits.train_labels[samples(told)].tolist()
    assert asked("what", 25, folder / "config.json") == told
    assert len(asked("when", 7, folder, "--stop", 44)["steps"]) in (3, 4)  # of four epochs, each of which drops one


def test_a_run_whose_data_have_changed_is_refused(run: tuple[Path, RunConfig]) -> None:
    folder, _ = run
    result = {"status": "diverged", "steps": 5, "data": {"fingerprint": "of others", "train_images": 100}}
    RunFolder(folder).write_result(result)
    assert "digits has changed since the run" in refused("what", 3, folder)


def test_a_run_whose_data_are_gone(run: tuple[Path, RunConfig], tmp_path: Path) -> None:
    config = RunConfig(dataset=str(tmp_path / "gone.npz"), order="srs", batch_size=8)
    folder = RunFolder(tmp_path / "other")
    folder.claim(config)
    assert "gone.npz" in refused("what", 3, folder.path)
    folder.write_result({"status": "diverged", "steps": 5, "data": {"fingerprint": "x", "train_images": 64}})
    told = asked("what", 3, folder.path)
    assert samples(told) == SequencedReplacement(64, 8).batch(3).tolist()
    assert "label" not in told["samples"][0]
    assert "Labels are left out" in " ".join(CliRunner().invoke(app, ["what", "3", str(folder.path)]).stdout.split())


def test_names_of_files(tmp_path: Path) -> None:
    image, images = pytest.importorskip("PIL.Image"), tmp_path / "images"
    for split in ("train", "test"):
        for kind in ("cat", "dog"):
            (images / split / kind).mkdir(parents=True)
            for number in range(3):
                image.new("L", (4, 4), number).save(images / split / kind / f"{number}.png")
    words = ("--order", "reshuffling", "-N", 6, "-B", 2, "--dataset", images)
    told = asked("what", 4, *words)["samples"]
    names = [f"train/{kind}/{number}.png" for kind in ("cat", "dog") for number in range(3)]
    assert [sample["file"] for sample in told] == [names[sample["sample"]] for sample in told]
    assert asked("when", 5, *words)["file"] == "train/dog/2.png"
    RunFolder(tmp_path / "few").claim(RunConfig(dataset=str(images), images_per_class=2, batch_size=2))
    few = asked("what", 0, tmp_path / "few")["samples"][0]
    assert few["file"].startswith(f"train/{few['class']}/")


def test_saved_states(tmp_path: Path) -> None:
    sampler = SRSBatchSampler(range(1000), 10, seed=3)
    sampler.seek(50)
    saved = sampler.state_dict()
    (tmp_path / "state.json").write_text(json.dumps(saved))
    torch.save({"model": {"w": torch.ones(2)}, "loops": [{"sampler": saved}]}, tmp_path / "checkpoint.pt")
    expected = SequencedReplacement(1000, 10, seed=3).batch(12).tolist()
    for name in ("state.json", "checkpoint.pt"):
        assert samples(asked("what", 12, tmp_path / name)) == expected
        assert asked("when", 1, tmp_path / name)["stop"] == 50


def test_what_cannot_be_answered_is_said(tmp_path: Path, run: tuple[Path, RunConfig]) -> None:
    assert "--order should be given, or a run's folder" in refused("what", 3)
    assert "--batch-size should be given" in refused("what", 3, "--order", "srs", "-N", 10)
    assert "--seed should be left out, since" in refused("what", 3, run[0], "--seed", 1)
    assert "--dataset and --option should be left out" in refused("what", 3, run[0], "--dataset", "digits")
    assert "STEP should be a whole number, 0 or more" in refused("what", "--order", "srs", "-N", 10, "-B", 2, "--", -1)
    assert "labels should be given for the order 'stratified'" in refused(
        "what", 3, "--order", "stratified", "-N", 10, "-B", 2
    )
    assert "--dataset should have the 10 samples" in refused(
        "what", 3, "--order", "srs", "-N", 10, "-B", 2, "--dataset", "digits"
    )
    assert "--start should be at most 2" in refused(
        "when", 3, "--order", "srs", "-N", 10, "-B", 2, "--start", 5, "--stop", 2
    )
    assert "config.json" in refused("what", 3, tmp_path)  # a folder of no run
    assert "gone.json cannot be used" in refused("what", 3, tmp_path / "gone.json")
    for name, content, said in [
        ("empty.json", "{}", "holds none"),
        ("torn.json", '{"a": ', "is garbled"),
        ("noise.pt", "no checkpoint", "should be JSON or a file that torch.load reads"),
    ]:
        (tmp_path / name).write_text(content)
        assert said in refused("what", 3, tmp_path / name)
    both = [state.save(RandomReshuffling(8, 2, seed=seed), 1) for seed in (0, 1)]
    (tmp_path / "both.json").write_text(json.dumps(both))
    assert "holds 2 different ones" in refused("what", 3, tmp_path / "both.json")
