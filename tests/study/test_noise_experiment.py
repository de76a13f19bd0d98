"""The experiment on the noise of orders: its computations, its records, and a page that matches them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from replenish import theory
from replenish.lab.statistics import mean_with_interval
from study.__main__ import app
from study.noise import page
from study.noise.experiment import measure, run_noise
from study.noise.plateau import Plateau, Problem, problem_of
from study.noise.results import OFF, ON, UNDECIDED, BandValue, Results, read_results
from study.noise.setting import ARMS, EXPERIMENTS, WHITE, Setting, find
from study.noise.sgd_variance import gradients, variances

# A large weight decay, so that the minimum is found quickly.
SMALL = Setting(
    weight_decay=0.1,
    images_per_class=8,
    batch_size=8,
    hidden=3,
    kappas=(0.1, 1.0, 10.0),
    settling_epochs=1,
    measured_epochs=2,
    every=3,
    repeats=1,
)


def test_gradients_equal_autograd() -> None:
    problem = problem_of(SMALL)
    torch.manual_seed(0)
    size = sum(rows * columns for rows, columns in problem.shapes)
    weights = torch.randn(3, size, dtype=torch.float64) / 4
    chosen = torch.arange(80).repeat(3, 1)
    for network, found in zip(weights, gradients(problem, weights, chosen), strict=True):
        network.requires_grad_()
        (expected,) = torch.autograd.grad(problem.loss(network), network)
        assert torch.allclose(found, expected, atol=1e-12)


def test_trainings_stepped_together_equal_single_trainings() -> None:
    problem = problem_of(SMALL)
    size = sum(rows * columns for rows, columns in problem.shapes)
    directions = torch.eye(size, 4, dtype=torch.float64)
    start = Plateau(torch.full((size,), 0.1, dtype=torch.float64), torch.empty(0), directions, 0, 0, 0)
    trainings = [(rate, ARMS[arm].make(80, 8, 1)) for rate in (0.1, 0.3) for arm in ("srs", "reshuffling")]
    together = variances(problem, start, directions, trainings, SMALL)
    for training, found in zip(trainings, together, strict=True):
        (alone,) = variances(problem, start, directions, [training], SMALL)
        assert torch.allclose(alone, found)
        assert (found > 0).all()


class Quadratic(Problem):
    """A quadratic loss with random gradients per image, as the law assumes."""

    def layers(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError


def test_on_a_quadratic_the_method_finds_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a linear problem, measured as in the experiment, the variances equal those of `theory`."""
    setting = replace(SMALL, images_per_class=32, batch_size=20, settling_epochs=40, measured_epochs=600)
    torch.manual_seed(1)
    numbers = torch.randn(320, 200, dtype=torch.float64)
    numbers -= numbers.mean(0)
    kappas = torch.tensor([0.3] * 100 + [3.0] * 100, dtype=torch.float64)
    curvatures = kappas / setting.steps_per_epoch / 0.1

    def linear(problem: Problem, weights: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        return weights * curvatures + numbers[chosen].mean(1)

    monkeypatch.setattr("study.noise.sgd_variance.gradients", linear)
    problem = Quadratic(numbers, numbers, 1, 0.0)
    start = Plateau(torch.zeros(200, dtype=torch.float64), curvatures, torch.eye(200, dtype=torch.float64), 0, 0, 0)
    orders = [ARMS[arm].make(320, 20, 5) for arm in (WHITE, "reshuffling", "srs")]
    found = variances(problem, start, start.directions, [(0.1, order) for order in orders], setting)
    for order, one in zip(orders, found / found[0], strict=True):
        for place, kappa in ((slice(0, 100), 0.3), (slice(100, 200), 3.0)):
            law = float(theory.noise_variance(order, kappa))
            assert float(one[place].mean()) == pytest.approx(law, rel=0.08, abs=0.01)


def test_a_run_writes_its_record_once(tmp_path: Path) -> None:
    path = run_noise("noise/digits", SMALL, 3, tmp_path, "replenish run noise/digits")
    record = json.loads(path.read_text())
    assert record["setting"] == SMALL.config()
    assert record["plateau"]["gradient"] < 1e-6
    for rate in record["rates"]:
        assert set(rate["variances"]) == set(ARMS)
        kappas = np.array(rate["curvatures"]) * rate["learning_rate"] * SMALL.steps_per_epoch
        assert rate["kappas"] == pytest.approx(kappas.tolist(), rel=1e-4)
        assert all(len(values) == len(kappas) for values in rate["variances"].values())
    assert measure(SMALL, 3)["rates"] == record["rates"]
    before = path.read_bytes()
    assert run_noise("noise/digits", SMALL, 3, tmp_path, "again") == path
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="was made with another setting"):
        run_noise("noise/digits", replace(SMALL, hidden=4), 3, tmp_path, "other")


def test_readings_come_from_all_parts_of_an_epoch() -> None:
    for setting in EXPERIMENTS.values():
        assert setting.num_samples % setting.batch_size == 0
        assert np.gcd(setting.every, setting.steps_per_epoch) == 1


@pytest.mark.parametrize(
    ("excess", "verdict"),
    [([0.01, 0.0, 0.02], ON), ([0.2, 0.21, 0.22], OFF), ([0.3, -0.2, 0.1], UNDECIDED), ([0.01], UNDECIDED)],
)
def test_verdicts(excess: list[float], verdict: str) -> None:
    assert BandValue(1.0, 0.5, 0.5, mean_with_interval(excess), 3).verdict == verdict


def test_the_value_of_a_band_is_a_mean_of_ratios() -> None:
    setting = {"learning_rates": [0.1], "kappas": [0.1, 1.0, 10.0], "images_per_class": 128, "batch_size": 40}
    variances = {arm: [2.0, 4.0] for arm in ARMS} | {WHITE: [4.0, 4.0]}
    rate = {"learning_rate": 0.1, "kappas": [0.2, 0.5], "variances": variances}
    results = Results({seed: {"setting": setting, "rates": [rate]} for seed in (0, 1)})
    (value,) = results.values(0.1, "srs")
    law = theory.noise_variance(ARMS["srs"].make(1280, 40, 0), [0.2, 0.5]).mean()
    assert (value.measured, value.law, value.directions) == (0.75, pytest.approx(law), 4)
    assert value.excess.value == pytest.approx(0.75 - law)
    assert value.kappa == pytest.approx(0.1**0.5)


def test_the_command_writes_a_file_for_every_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["noise", "noise/cifar"])
    sentence = "there is no experiment named 'noise/cifar'; there is noise/digits"
    assert (done.exit_code, done.stderr) == (2, f"replenish: {sentence}\n")
    assert find("noise") == EXPERIMENTS
    monkeypatch.setitem(EXPERIMENTS, "noise/digits", SMALL)
    done = CliRunner().invoke(app, ["noise", "--seeds", "2", "--runs", str(tmp_path)])
    assert done.exit_code == 0, done.stderr
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["noise-digits-seed0.json", "noise-digits-seed1.json"]


# ---- The page ----


ROOT = Path(__file__).parents[2]


@pytest.fixture
def results() -> Results:
    return read_results(ROOT / "results" / "noise", "noise/digits")


def test_the_page_and_the_picture_match_the_records(results: Results) -> None:
    content = (ROOT / page.PAGE).read_text()
    (written,) = re.findall(r"<!-- begin: noise -->\n\n(.*?)\n\n<!-- end: noise -->", content, flags=re.DOTALL)
    assert written == page.text(results), "run `python -m study pages`"
    assert (ROOT / page.PICTURE).read_text() == page.picture(results)
    assert (page.RESULTS / page.TABLES).read_text() == page.tables(results)


def test_the_records_have_the_stated_setting(results: Results) -> None:
    assert results.setting == EXPERIMENTS["noise/digits"].config()
    assert len(results.records) >= 3
    assert len({record["commit"] for record in results.records.values()}) == 1
    assert all(record["plateau"]["gradient"] < 1e-6 for record in results.records.values())
