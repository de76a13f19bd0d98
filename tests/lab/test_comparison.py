"""`compare`: the same network and initial weights with several orders, from Python and on the command line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from typer.testing import CliRunner

from replenish.cli import app
from replenish.lab import Answer, Hardware, compare
from replenish.lab.comparing.data import BESIDES
from replenish.lab.comparing.data_plan import comparison_configs
from replenish.lab.config import ORDER_NAMES
from replenish.lab.data import Dataset, load, reduce

ORDERS = ("reshuffling", "srs", "replacement")


def small_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 3 * 3, 10)
    )


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return reduce(load("digits"), images_per_class=20)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def found(digits: Dataset, runs: Path) -> Answer:
    return compare(digits, model=small_network, seeds=3, epochs=2, runs=runs)


def test_means_intervals_and_differences_match_the_records(found: Answer, runs: Path) -> None:
    recorded: dict[str, dict[int, float]] = {order: {} for order in ORDERS}
    for path in runs.rglob("result.json"):
        config = json.loads((path.parent / "config.json").read_text())
        recorded[config["order"]][config["seed"]] = json.loads(path.read_text())["test_error"]
    assert found.values == recorded
    assert all(set(errors) == {0, 1, 2} for errors in found.values.values())
    differences = [recorded["srs"][seed] - recorded["reshuffling"][seed] for seed in range(3)]
    half = stats.t.ppf(0.975, 2) * np.std(differences, ddof=1) / math.sqrt(3)
    verdict = found.verdicts[0]
    assert (verdict.first, verdict.second) == ("srs", "reshuffling")
    assert verdict.difference.mean == pytest.approx(np.mean(differences))
    interval = verdict.difference.interval()
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((np.mean(differences) - half, np.mean(differences) + half))
    assert set(found.besides) == set(BESIDES)
    assert found.besides["Training loss, clean"]["srs"].keys() == {0, 1, 2}


def test_the_page_has_the_verdicts_the_pairs_and_the_curves(found: Answer) -> None:
    text = found.page.read_text()
    assert "srs <span>against</span> reshuffling" in text
    assert text.count('class="join"') == 3
    assert 'id="curves"' in text


def test_another_metric_reads_the_same_runs(digits: Dataset, runs: Path, found: Answer) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("result.json")}
    for metric, field in {"balanced-error": "test_balanced_error", "loss": "test_loss"}.items():
        again = compare(digits, model=small_network, seeds=3, epochs=2, runs=runs, metric=metric, margin=1000)
        assert {verdict.outcome for verdict in again.verdicts} == {"equivalent"}
        for path in runs.rglob("result.json"):
            config = json.loads((path.parent / "config.json").read_text())
            value = json.loads(path.read_text())[field]
            assert again.values[config["order"]][config["seed"]] == value
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("result.json")} == before


def test_until_decided_runs_only_as_many_seeds_as_needed(digits: Dataset, tmp_path: Path) -> None:
    places: set[int] = set()
    found = compare(
        digits,
        model=small_network,
        orders=("reshuffling", "srs"),
        epochs=1,
        runs=tmp_path,
        until_decided=True,
        max_seeds=9,
        margin=99,
        watch=lambda place, event: places.add(place),
    )
    seeds = len(found.values["srs"])
    assert found.verdicts[0].outcome == "equivalent"
    assert 3 <= seeds < 9
    assert len(list(tmp_path.rglob("result.json"))) == 2 * seeds
    assert places == set(range(2 * seeds))


def test_each_order_can_have_its_own_recipe(digits: Dataset) -> None:
    rates = {"srs": 0.2, "reshuffling": 0.05}
    recipe = {"learning_rate": rates, "schedule": {"srs": "cosine"}, "epochs": 10}
    _, configs = comparison_configs(digits, "wrn-10-1", ORDERS, recipe)
    assert [config.learning_rate for config in configs] == [0.05, 0.2, 0.1]
    assert [config.schedule for config in configs] == ["steps", "cosine", "steps"]
    with pytest.raises(ValueError, match="learning_rate should have values for reshuffling, srs, .* one for sorted"):
        comparison_configs(digits, "wrn-10-1", ORDERS, {"learning_rate": {"sorted": 0.1}})


def test_the_page_describes_the_training_of_each_order(digits: Dataset, tmp_path: Path) -> None:
    recipe: dict[str, Any] = {"optimizer": "adamw", "schedule": "cosine", "learning_rate": 0.001, "epochs": 2}
    arguments: dict[str, Any] = {"model": small_network, "seeds": 1, "runs": tmp_path, "orders": ("reshuffling", "srs")}
    page = compare(digits, **arguments, **recipe).page.read_text()
    assert "2 effective epochs, learning rate 0.001, down to 0 along a cosine; AdamW, weight decay 0.0005; " in page
    assert "The trainings differ in the order of their data only and are paired by seed" in page
    recipe = {"nesterov": True, "warm_up_epochs": {"srs": 0.5}, "label_smoothing": 0.1, "decay_epochs": (), "epochs": 2}
    page = compare(digits, **arguments, **recipe).page.read_text()
    assert "learning rate 0.1 after a linear warm-up of 0.5 effective epochs, constant; Nesterov momentum 0.9" in page
    assert "2 effective epochs, learning rate 0.1, constant; Nesterov momentum 0.9, weight decay 0.0005, label" in page
    assert "The trainings differ in the order of their data and in the recipe of each order" in page


def test_warnings(tmp_path: Path) -> None:
    """Two classes that are easy to distinguish, and ten test images."""
    labels = np.arange(50) % 2
    images = (250 * labels).astype(np.uint8)[:, None, None] + np.zeros((50, 8, 8), np.uint8)
    found = compare(
        (images, labels),
        model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 2)),
        seeds=2,
        epochs=3,
        runs=tmp_path,
        batch_size=10,
        orders=("srs", "reshuffling"),
    )
    tiny, saturated, few = found.warnings[0], found.warnings[1], found.warnings[-1]
    assert tiny.startswith("the test set is tiny: one of its 10 images is 10 points")
    assert saturated.startswith("the networks are saturated: they are wrong on fewer than 3 of 10 test images")
    assert few == "2 pairs of runs decide nothing: take at least 3 seeds"
    assert "Before you read on" in found.page.read_text()


def test_untrained_networks_give_a_warning(digits: Dataset, tmp_path: Path) -> None:
    found = compare(digits, model=small_network, seeds=1, epochs=1, runs=tmp_path, learning_rate=1e-9)
    assert found.warnings[0].startswith("the networks are untrained: the least mean test error is ")


def test_runs_of_a_seed_start_from_the_same_weights(digits: Dataset, tmp_path: Path) -> None:
    made: list[bytes] = []

    def watched() -> nn.Module:
        network = small_network()
        made.append(network[0].weight.detach().numpy().tobytes())  # type: ignore[operator, union-attr]
        return network

    compare(digits, model=watched, seeds=[0, 5], epochs=1, runs=tmp_path)
    _asked_for_a_name, *initial = made
    assert len(initial) == 6
    assert len(set(initial[:3])) == len(set(initial[3:])) == 1
    assert initial[0] != initial[3]


def test_more_seeds_cost_only_themselves(digits: Dataset, runs: Path, found: Answer) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("result.json")}
    ended: list[int] = []

    def watch(place: int, event: dict[str, Any]) -> None:
        ended.extend([place] if event["event"] == "end" else [])

    again = compare(digits, model=small_network, seeds=4, epochs=2, runs=runs, watch=watch)
    assert ended == list(range(12))  # runs that had ended before report it too
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(runs.rglob("result.json"))) == len(before) + 3
    assert {seed: error for seed, error in again.values["srs"].items() if seed < 3} == found.values["srs"]


def test_another_network_or_other_data_are_other_runs(digits: Dataset) -> None:
    def other() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    fewer = reduce(digits, images_per_class=10)
    slugs = {
        comparison_configs(data, model, ORDERS, {})[1][0].slug
        for data in (digits, fewer)
        for model in (small_network, other)
    }
    assert len(slugs) == 4


def test_a_networks_name_does_not_move_the_users_generator(digits: Dataset) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    comparison_configs(digits, small_network, ORDERS, {})
    assert torch.equal(torch.get_rng_state(), before)


def test_the_orders_differ_in_nothing_else(digits: Dataset) -> None:
    _, configs = comparison_configs(digits, "wrn-10-1", ORDERS, {"pool_size": 400})
    assert [config.order for config in configs] == list(ORDERS)
    assert [config.pool_size for config in configs] == [None, 400, None]
    others = [config.differences(configs[1]) for config in configs]
    assert all(set(differing) <= {"order", "pool_size"} for differing in others)


def test_every_arm_sees_as_many_samples_in_batches_of_one_size(digits: Dataset) -> None:
    """130 images in batches of 64 leave 2 images, which would be too small a batch for batch norm."""
    few = reduce(digits, images_per_class=13)
    _, configs = comparison_configs(few, "wrn-10-1", tuple(ORDER_NAMES[:6]), {"batch_size": 64})
    for config in configs:
        steps = config.steps_per_epoch(130)
        assert steps == 2
        assert [len(batch) for batch in config.build_order(130).batches(0, 3 * steps)] == [64] * 6
    with pytest.raises(ValueError, match="drop_last should be True where batch_size=64 does not divide the 130"):
        comparison_configs(few, "wrn-10-1", ORDERS, {"batch_size": 64, "drop_last": False})
    comparison_configs(few, "wrn-10-1", ORDERS, {"batch_size": 65, "drop_last": False})


def test_finished_runs_of_other_hardware_are_refused(digits: Dataset, runs: Path, found: Answer) -> None:
    for hardware, change in (
        (Hardware(threads=2), "threads=1, but 2"),
        (Hardware(compile=True), "compile=False, but True"),
    ):
        with pytest.raises(ValueError, match=f"holds a run with {change} is asked for now; keep those runs apart"):
            compare(digits, model=small_network, seeds=3, epochs=2, runs=runs, hardware=hardware)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"orders": ("srs", "random")}, "order should be one of srs, reshuffling"),
        ({"model": "wrn-9"}, "model should be one of the networks"),
        ({"epoch": 3}, "compare takes fields of RunConfig, but got epoch"),
        ({"model": lambda: 3}, "model should return a torch.nn.Module, but it returned a int"),
        ({"model": small_network()}, "make a network, as a class or a function does, but got a network itself"),
        ({"parallel": 2}, "a network of your own can be trained in this process only, .* but got 2"),
        ({"model": "wrn-10-1", "parallel": 2}, "data of your own can be trained in this process only"),
        ({"hardware": Hardware(num_nodes=2)}, "num_nodes=2 needs a process on each machine, but this one was started"),
    ],
)
def test_bad_input(digits: Dataset, tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        compare(digits, **{"model": small_network, "runs": tmp_path / "runs", **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()


def test_a_dataset_in_memory_is_reduced_by_its_config(tmp_path: Path) -> None:
    found = compare(
        load("digits"), model=small_network, seeds=1, epochs=1, runs=tmp_path, images_per_class=7, image_size=8
    )
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    assert len(found.values) == len(results) == 3
    assert {result["data"]["train_images"] for result in results} == {70}


def write_npz(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = np.arange(60) % 3
    images = random.integers(0, 128, (60, 8, 8, 3), dtype=np.uint8)
    images[:, :, :, 0] += (labels * 50).astype(np.uint8)[:, None, None]
    np.savez(path, images=images, labels=labels)


@pytest.mark.slow
def test_the_command_on_the_users_own_file(tmp_path: Path) -> None:
    data, runs = tmp_path / "mine.npz", tmp_path / "runs"
    write_npz(data, seed=0)
    command = ["compare", str(data), "--seeds", "2", "--epochs", "2", "--batch-size", "16", "--runs", str(runs)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    first, second, advice, command_again, *numbers = done.stdout.splitlines()
    assert advice.endswith("where M is the largest difference that does not matter:")
    assert command_again.endswith("--until-decided --margin M")
    assert first.startswith("Undecided between srs and reshuffling: ")
    assert second.startswith("Undecided between replacement and reshuffling: ")
    assert "n = 2 seeds, paired" in first
    assert numbers[0].startswith("reshuffling  mean ")
    assert Path(numbers[-1].removeprefix("Page: ")).is_file()
    assert done.stderr.index("Warning: the test set is tiny") < done.stderr.index("Warning: 2 pairs of runs decide")
    assert len(list(runs.rglob("result.json"))) == 6
    more = CliRunner().invoke(app, [*command[:3], "3", *command[4:]])
    assert "9 runs of wrn-10-1, 3 of them still to be run, about 1 min in all" in " ".join(more.output.split())
    assert "Warning: an earlier answer about these runs looked at 2 seeds, and this one looks at 3" in more.stderr

    write_npz(data, seed=1)  # runs of the old file must not count for the new one
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "holds a run on other data" in " ".join(again.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-folder/x"], "does not exist"),
        (["digts"], "did you mean 'digits'"),
        (["digits", "--num-nodes", "2"], "was started alone; start it with torchrun on each"),
        (["digits", "--learning-rate", "-1"], "--learning-rate should be positive and finite"),
        (["digits", "--learning-rate", "fast"], "--learning-rate should be a value, or ORDER=VALUE, but got 'fast'"),
        (["digits", "--metric", "accuracy"], "metric should be one of error, balanced-error, loss"),
        (["digits", "--optimizer=adamw", "--momentum=0.8"], "--momentum should be left out with the optimizer 'adamw'"),
        (["digits", "--schedule=cosine", "--decays=9"], "--decays should be left out with the schedule 'cosine'"),
        (["digits", "--until-decided", "--seeds=1,2,3"], "--seeds should be left out with --until-decided"),
        (["digits", "--max-seeds=9"], "--max-seeds should be given with --until-decided only"),
        (["digits", "--model", "nowhere:net"], "nowhere cannot be imported"),
        (["digits", "--model", "torch.nn:Linear"], "torch.nn:Linear should need no arguments except in_channels"),
        (["digits", "--model", "timm:resnet18"], "timm:resnet18 needs timm, which cannot be imported here"),
        (["digits", "--batch-size", "5000"], "--batch-size should be at most num_samples"),
    ],
)
def test_bad_input_of_the_command(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", *arguments, "--runs", str(tmp_path / "runs")])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_example_with_your_own_network_runs(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "compare_own_network.py"
    command = [sys.executable, str(script), "--seeds", "2", "--epochs", "1", "--runs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Warning: ")
    assert "Undecided between srs and reshuffling" in done.stdout
    assert len(list(tmp_path.rglob("result.json"))) == 6
