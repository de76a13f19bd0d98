"""`compare`: the same network and initial weights with several orders, from Python and from the command line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from typer.testing import CliRunner

from replenish.cli import app
from replenish.lab import Comparison, Hardware, compare
from replenish.lab.comparison import comparison_configs
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
def found(digits: Dataset, runs: Path) -> Comparison:
    return compare(digits, model=small_network, seeds=3, epochs=2, runs=runs)


def test_every_order_and_seed_has_an_error(found: Comparison) -> None:
    assert set(found.errors) == set(ORDERS)
    assert all(set(errors) == {0, 1, 2} for errors in found.errors.values())
    assert len(found.sentences) == 2


def test_means_intervals_and_differences_are_those_of_the_records(found: Comparison, runs: Path) -> None:
    recorded: dict[str, dict[int, float]] = {order: {} for order in ORDERS}
    for path in runs.rglob("result.json"):
        config = json.loads((path.parent / "config.json").read_text())
        recorded[config["order"]][config["seed"]] = json.loads(path.read_text())["test_error"]
    assert found.errors == recorded
    differences = [recorded["srs"][seed] - recorded["reshuffling"][seed] for seed in range(3)]
    half = stats.t.ppf(0.975, 2) * np.std(differences, ddof=1) / math.sqrt(3)
    finding = found.section.findings[0]
    assert finding.second == "reshuffling"
    assert finding.difference.mean == pytest.approx(np.mean(differences))
    interval = finding.difference.interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((np.mean(differences) - half, np.mean(differences) + half))


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


def test_more_seeds_cost_only_themselves(digits: Dataset, runs: Path, found: Comparison) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("result.json")}
    again = compare(digits, model=small_network, seeds=4, epochs=2, runs=runs)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(runs.rglob("result.json"))) == len(before) + 3
    assert {seed: error for seed, error in again.errors["srs"].items() if seed < 3} == found.errors["srs"]


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
    """130 images in batches of 64: an epoch that ended on the 2 left over would train batch norm on them."""
    few = reduce(digits, images_per_class=13)
    _, configs = comparison_configs(few, "wrn-10-1", tuple(ORDER_NAMES[:6]), {"batch_size": 64})
    for config in configs:
        steps = config.steps_per_epoch(130)
        assert steps == 2
        assert [len(batch) for batch in config.build_order(130).batches(0, 3 * steps)] == [64] * 6
    with pytest.raises(ValueError, match="drop_last should be True where batch_size=64 does not divide the 130"):
        comparison_configs(few, "wrn-10-1", ORDERS, {"batch_size": 64, "drop_last": False})
    comparison_configs(few, "wrn-10-1", ORDERS, {"batch_size": 65, "drop_last": False})


def test_finished_runs_of_other_hardware_are_no_pair(digits: Dataset, runs: Path, found: Comparison) -> None:
    for hardware, said in (
        (Hardware(threads=2), "threads=1, but 2"),
        (Hardware(compile=True), "compile=False, but True"),
    ):
        with pytest.raises(ValueError, match=f"holds a run with {said} is asked for now; keep those runs apart"):
            compare(digits, model=small_network, seeds=3, epochs=2, runs=runs, hardware=hardware)


def test_another_dropout_is_another_run(digits: Dataset, runs: Path, found: Comparison) -> None:
    def dropping() -> nn.Module:
        return nn.Sequential(*small_network(), nn.Dropout(0.9))  # type: ignore[misc]

    slugs = {comparison_configs(digits, model, ORDERS, {})[1][0].slug for model in (small_network, dropping)}
    assert len(slugs) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"orders": ("srs",)}, "orders should be two or more different orders, but got srs"),
        ({"orders": ("srs", "random")}, "order should be one of srs, reshuffling"),
        ({"model": "wrn-9"}, "name should be one of the networks"),
        ({"seeds": 0}, "seeds should be"),
        ({"epoch": 3}, "compare takes fields of RunConfig, but got epoch"),
        ({"model": lambda: 3}, "model should return a torch.nn.Module, but it returned a int"),
        ({"model": small_network()}, "make a network, as a class or a function does, but got a network itself"),
        ({"parallel": 2}, "a network of your own can be trained in this process alone, .* but got 'local' and 2"),
        ({"model": "wrn-10-1", "launcher": "slurm"}, "data of your own can be trained in this process alone"),
        ({"hardware": Hardware(num_nodes=2)}, "num_nodes=2 needs a process on each machine, but this one was started"),
    ],
)
def test_bad_input(digits: Dataset, tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        compare(digits, **{"model": small_network, "runs": tmp_path / "runs", **arguments})  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()


def test_a_dataset_in_memory_is_cut_down_as_its_config_says(tmp_path: Path) -> None:
    found = compare(
        load("digits"), model=small_network, seeds=1, epochs=1, runs=tmp_path, images_per_class=7, image_size=8
    )
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    assert len(found.errors) == len(results) == 3
    assert {result["data"]["train_images"] for result in results} == {70}


def test_what_is_wrong_with_the_recipe_is_said_before_data_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replenish.lab.comparison.load", lambda *_, **__: pytest.fail("data were read"))
    for arguments, sentence in (
        ({"orders": ("srs", "reshufling")}, "order should be one of"),
        ({"batch_size": 0}, "batch_size should be at least 1"),
        ({"model": "wrn-9"}, "name should be one of the networks"),
    ):
        with pytest.raises(ValueError, match=sentence):
            compare("cifar100", **arguments)  # type: ignore[arg-type]


def test_large_images_have_a_padding_that_is_allowed() -> None:
    images = np.zeros((4, 600, 600, 1), np.uint8)
    labels = np.array([0, 1, 0, 1])
    large = Dataset(images, labels, images, labels, ("a", "b"), "large")
    _, configs = comparison_configs(large, small_network, ORDERS, {"batch_size": 2})
    assert configs[0].pad == 64


def test_orders_without_srs_and_reshuffling_are_compared_with_the_first(digits: Dataset, tmp_path: Path) -> None:
    orders = ("independent", "flip-flop", "shuffle-once")
    found = compare(digits, model=small_network, seeds=2, epochs=1, runs=tmp_path, orders=orders)
    assert len(found.sentences) == 2
    assert {finding.second for finding in found.section.findings} == {"independent"}


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
    assert "srs minus reshuffling" in done.output
    assert "srs minus replacement" in done.output
    assert "n = 2 seeds, paired" in " ".join(done.output.split())
    assert len(list(runs.rglob("result.json"))) == 6
    more = CliRunner().invoke(app, [*command[:3], "3", *command[4:]])
    assert "9 runs of wrn-10-1, 3 of them still to be run, about 1 min in all" in " ".join(more.output.split())

    write_npz(data, seed=1)  # the file changes: its old runs must not pass for new ones
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "holds a run on other data" in " ".join(again.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-folder/x"], "does not exist"),
        (["digts"], "did you mean 'digits'"),
        (["digits", "--orders", "srs,srs"], "orders should be two or more"),
        (["digits", "--num-nodes", "2"], "was started alone; start it with torchrun on each"),
        (["digits", "--learning-rate", "-1"], "learning_rate should be a number above 0"),
        (["digits", "--batch-size", "5000"], "batch_size should be at most num_samples"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare", *arguments, "--runs", str(tmp_path / "runs")])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_the_example_with_a_network_of_ones_own_runs(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "compare_own_network.py"
    command = [sys.executable, str(script), "--seeds", "2", "--epochs", "1", "--runs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "* srs ended" in done.stdout
    assert len(list(tmp_path.rglob("result.json"))) == 6
