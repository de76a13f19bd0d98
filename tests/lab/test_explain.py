"""The commands explain, what and when, for orders, runs and saved states."""

from __future__ import annotations

import io
import json
import os
import re
import webbrowser
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner, Result

from replenish import Jitter, Mixture, RandomReshuffling, SequencedReplacement, Skipping, state
from replenish.cli import app
from replenish.lab import RunConfig
from replenish.lab.data import load
from replenish.lab.explain import pages, terminal
from replenish.lab.runs import RunFolder
from replenish.measure.trace import Trace, compute_trace
from replenish.torch import SRSBatchSampler

# ---- explain ----


def explained(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def shown(trace: Trace, width: int = 80) -> str:
    written = io.StringIO()
    terminal.show(trace, Console(file=written, width=width, highlight=False))
    return written.getvalue()


def steps_shown(text: str) -> list[dict[str, list[str]]]:
    """Parse the terminal view into the rows of each step. The second row with the same name gets a 2."""
    steps: list[dict[str, list[str]]] = []
    for block in re.split(r"^step \d+ of \d+\n", text, flags=re.MULTILINE)[1:]:
        rows: dict[str, list[str]] = {}
        for line in block.split("\n\n")[0].splitlines():
            if name := line[2:9].strip():
                last = name if name not in rows else f"{name}2"
                rows[last] = []
            rows[last] += line[9:].split()
        steps.append(rows)
    return steps


@pytest.mark.parametrize(("num_samples", "batch_size", "width"), [(5, 2, 80), (5, 1, 20), (40, 7, 60), (4, 4, 80)])
def test_the_terminal_shows_the_trace(num_samples: int, batch_size: int, width: int) -> None:
    trace = compute_trace(num_samples, batch_size, 9, seed=2)
    text = shown(trace, width)
    assert "\x1b" not in text  # plain text, since it is not a terminal
    steps = steps_shown(text)
    assert len(steps) == 9
    for number, rows in enumerate(steps):
        step, size = trace.step(number), trace.batch_size
        drawn = set(step.slots.tolist())
        pools = [("pool", step.pool_before, "[]"), ("pool2", step.pool_after, "<>")]
        for name, pool, marks in pools:
            assert rows[name] == [
                f"{marks[0]}{sample}{marks[1]}" if slot in drawn else str(sample) for slot, sample in enumerate(pool)
            ]
        assert rows["batch"] == [str(sample) for sample in step.batch]
        assert rows["queue"][:size] == [f"<{sample}>" for sample in step.refill]
        assert rows["queue"][size:-1] == [str(sample) for sample in step.queue[size : len(rows["queue"]) - 1]]
        assert rows["queue"][-1] == "…"


def test_the_page_has_the_trace_and_needs_no_network() -> None:
    trace = compute_trace(9, 2, 30, seed=4, sequence="shuffled", pool_size=18)
    text = pages.explorer_page(trace)
    held = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, flags=re.DOTALL)
    assert held is not None
    assert json.loads(held[1]) == trace.to_dict()
    assert "://" not in text
    assert not re.search(r"""["'(]//""", text)  # an address without its scheme
    assert not re.search(r"<(?:img|iframe|object|embed)\b|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    assert "9 samples, a pool of 18 slots · batches of 2 · 30 steps · shuffled sequence · seed 4" in text


def test_html(tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    path.write_text("old")
    done = explained("--n", "12", "--batch-size", "3", "--steps", "40", "--seed", "7", "--html", str(path))
    assert done.exit_code == 0, done.output
    assert done.output == f"written to {path}\n"
    assert path.read_text(encoding="utf-8") == pages.explorer_page(compute_trace(12, 3, 40, seed=7))
    assert os.listdir(tmp_path) == ["explorer.html"]  # no temporary file is left
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    done = explained("--open", "--steps", "3")
    assert done.exit_code == 0, done.output
    (written,) = tmp_path.glob("*/*.html")
    assert opened == [written.as_uri()]
    assert written.read_text(encoding="utf-8") == pages.explorer_page(compute_trace(5, 2, 3))

    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = explained("--open")
    assert done.exit_code == 2
    assert "no browser could be opened; the page is " in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "x.html", "--open"], "--html and --open should not be given together"),
        (["--html", "x.txt"], "--html should be the name of a .html file, but got x.txt"),
        (["--html", "no/such/folder/x.html"], "--html should be in a folder that is there"),
        (["--html", "x.html", "--n", "401"], "--n should be at most 400 for a page"),
        (["--html", "x.html", "--pool-size", "500"], "--pool-size should be at most 400 for a page"),
        (["--open", "--steps", "2001"], "--steps should be at most 2000 for a page"),
        (["--open", "--n", "400", "--batch-size", "100", "--steps", "2000"], "--steps should be at most 889"),
        (["--html", "x.html", "--batch-size", "-30"], "--batch-size should be at least 1, but got -30"),
        (["--batch-size", "6"], "--batch-size should be at most pool_size"),
        (["--steps", "0"], "--steps should be at least 1"),
        (["--sequence", "sorted"], '--sequence should be "shuffled", "identity"'),
        (["--seed", "-1"], "--seed should be at least 0"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = explained(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1
    assert not os.listdir(tmp_path)


# ---- what and when ----


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
    answer = asked("what", 7, by_hand)
    sources, indices = mixture.locate(mixture.batch(7))
    assert [(each["dataset"], each["index"]) for each in answer["samples"]] == list(
        zip(sources.tolist(), indices.tolist(), strict=True)
    )
    skipping = Skipping(mixture, [(5, 9)])
    saved.write_text(json.dumps(state.save(skipping, 20)))
    assert samples(asked("what", 7, saved)) == mixture.batch(11).tolist()
    answer = asked("when", 918, saved)
    assert (answer["dataset"], answer["index"], answer["stop"]) == (1, 18, 20)
    assert answer["steps"] == [step for step in range(20) if 918 in skipping.batch(step)]
    shown = CliRunner().invoke(app, ["when", "918", str(saved)])
    assert "Sample 918 (dataset 1, sample 18)" in shown.output
    by_hand.write_text(json.dumps({"order": "Mixture", "sizes": [900, 100], "batch_size": 8}))
    assert "weights should be in the config of a Mixture, but is missing" in refused("what", 7, by_hand)


def samples(answer: dict[str, Any]) -> list[int]:
    return [sample["sample"] for sample in answer["samples"]]


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, RunConfig]:
    config = RunConfig(dataset="digits", images_per_class=10, order="reshuffling", batch_size=9, epochs=4, seed=2)
    RunFolder(tmp_path / "run").claim(config)
    return tmp_path / "run", config


@pytest.mark.parametrize(("command", "named"), [("what", "step"), ("when", "sample")])
def test_a_negative_number_is_not_read_as_an_option(command: str, named: str) -> None:
    assert refused(command, -5, *SRS) == f"replenish: {named} should not be negative, but got -5"


@pytest.mark.parametrize("name", ["order.json", "config.json"])
def test_an_order_by_its_config(tmp_path: Path, name: str) -> None:
    order = Jitter(1000, 10, shard_size=50, seed=4)
    (tmp_path / name).write_text(json.dumps(order.config()))
    assert samples(asked("what", 777, tmp_path / name)) == order.batch(777).tolist()
    seen = asked("when", 7, tmp_path / name)
    assert (seen["stop"], len(seen["steps"])) == (100, 1)  # without a position, one effective epoch
    both = {"config": order.config(), "sampler": state.save(order, 300)}  # the state also has a position
    (tmp_path / name).write_text(json.dumps(both))
    assert asked("when", 7, tmp_path / name)["stop"] == 300


def test_an_order_by_its_name() -> None:
    order = SequencedReplacement(1000, 10, seed=3, pool_size=50)
    answer = asked("what", 777, *SRS, "--option", "pool_size=50", "--visits")
    assert samples(answer) == order.batch(777).tolist()
    assert [sample["visits"] for sample in answer["samples"]] == order.visits(777).tolist()
    assert answer["order"] == order.config()
    seen = asked("when", 5, *SRS, "--option", "pool_size=50", "--start", 300)
    assert seen["steps"] == [300 + k for k, batch in enumerate(order.batches(300, 400)) if 5 in batch]
    assert (seen["start"], seen["stop"]) == (300, 400)


def test_a_run_with_its_labels(run: tuple[Path, RunConfig]) -> None:
    folder, config = run
    digits = load("digits", images_per_class=10)
    answer = asked("what", 25, folder)
    assert samples(answer) == config.build_order(100).batch(25).tolist()
    assert [sample["label"] for sample in answer["samples"]] == digits.train_labels[samples(answer)].tolist()
    assert asked("what", 25, folder / "config.json") == answer
    assert len(asked("when", 7, folder, "--stop", 44)["steps"]) in (3, 4)  # in four epochs that drop the last batch


def test_a_run_with_changed_data_is_refused(run: tuple[Path, RunConfig]) -> None:
    folder, _ = run
    result = {"status": "diverged", "steps": 5, "data": {"fingerprint": "of others", "train_images": 100}}
    RunFolder(folder).write_result(result)
    assert "digits has changed since the run" in refused("what", 3, folder)


def test_a_run_whose_data_are_missing(run: tuple[Path, RunConfig], tmp_path: Path) -> None:
    config = RunConfig(dataset=str(tmp_path / "gone.npz"), order="srs", batch_size=8)
    folder = RunFolder(tmp_path / "other")
    folder.claim(config)
    assert "gone.npz" in refused("what", 3, folder.path)
    folder.write_result({"status": "diverged", "steps": 5, "data": {"fingerprint": "x", "train_images": 64}})
    answer = asked("what", 3, folder.path)
    assert samples(answer) == SequencedReplacement(64, 8).batch(3).tolist()
    assert "label" not in answer["samples"][0]
    assert "Labels are left out" in " ".join(CliRunner().invoke(app, ["what", "3", str(folder.path)]).stdout.split())


def test_names_of_files(tmp_path: Path) -> None:
    image, images = pytest.importorskip("PIL.Image"), tmp_path / "images"
    for split in ("train", "test"):
        for kind in ("cat", "dog"):
            (images / split / kind).mkdir(parents=True)
            for number in range(3):
                image.new("L", (4, 4), number).save(images / split / kind / f"{number}.png")
    words = ("--order", "reshuffling", "-N", 6, "-B", 2, "--dataset", images)
    answer = asked("what", 4, *words)["samples"]
    names = [f"train/{kind}/{number}.png" for kind in ("cat", "dog") for number in range(3)]
    assert [sample["file"] for sample in answer] == [names[sample["sample"]] for sample in answer]
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


def test_bad_input_of_what_and_when(tmp_path: Path, run: tuple[Path, RunConfig]) -> None:
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
    assert "config.json" in refused("what", 3, tmp_path)  # not the folder of a run
    assert "gone.json cannot be used" in refused("what", 3, tmp_path / "gone.json")
    for name, content, message in [
        ("empty.json", "{}", "holds none"),
        ("torn.json", '{"a": ', "is garbled"),
        ("noise.pt", "no checkpoint", "should be JSON or a file that torch.load reads"),
    ]:
        (tmp_path / name).write_text(content)
        assert message in refused("what", 3, tmp_path / name)
    both = [state.save(RandomReshuffling(8, 2, seed=seed), 1) for seed in (0, 1)]
    (tmp_path / "both.json").write_text(json.dumps(both))
    assert "holds 2 different ones" in refused("what", 3, tmp_path / "both.json")
