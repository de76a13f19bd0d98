"""The table of networks: names, sizes, errors, and its page."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

from replenish.cli import app
from replenish.lab.models import UNITS, WideResNet, build, cost, entry
from replenish.lab.models.table import CountedNetwork, models_table
from replenish.lab.show import Table
from replenish.lab.show.markdown import table_lines


@functools.lru_cache(1)  # The networks of a thousand layers take seconds.
def all_networks() -> Table:
    return models_table()


def counted() -> dict[str, CountedNetwork]:
    return dict(all_networks().subjects)


def test_the_table_marks_where_the_paper_differs() -> None:
    differing = {name for name, found in counted().items() if "differs" in found.remark}
    assert differing == {"wrn-70-10", "resnet-1202", "resnet-1202-stochastic-depth"}
    printed = {found.entry.paper_parameters for found in counted().values()} - {""}
    assert printed == {"1.7M", "10.2M", "26.2M", "34.4M", "25.6M", "8.9M", "11.0M", "36.5M", "106.4M"}


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text()
    assert "\n".join(table_lines(all_networks())) in page, "run `python benchmarks/models.py --table`"


def test_the_command_prints_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replenish.lab.models.table.models_table", all_networks)  # makes the table only once
    assert "differs: we count 104.2M or 104.3M" in CliRunner().invoke(app, ["list", "models"]).stdout


@pytest.mark.parametrize(
    "name", ["wrn-16-2", "densenet-bc-40-12", "shake-shake-11-2x4x16d", "all-cnn", "dsn", "fitnet", "highway", "elu"]
)
def test_multiply_adds_are_half_of_torchs_flops(name: str) -> None:
    model = build(name, image_size=16).eval() if name != "elu" else build(name, image_size=16, width=0.1).eval()
    overrides = {"width": 0.1} if name == "elu" else {}
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, 3, 16, 16))
    assert 2 * cost(name, image_size=16, **overrides).multiply_adds == counter.get_total_flops()


def test_names_give_the_settings_of_the_network() -> None:
    def settings(name: str) -> dict:
        return entry(name).builder.keywords  # type: ignore[attr-defined]

    assert settings("wrn-22-3") == {"depth": 22, "width": 3, "unit": "bn_after_addition", "dropout": 0.3}
    assert settings("wide-resnet-28-10")["unit"] == "original"
    for unit in UNITS:
        assert settings(f"wide-resnet-10-1-{unit.replace('_', '-')}")["unit"] == unit
    assert settings("resnet-1202-stochastic-depth") == {"depth": 1202, "survival": 0.5}
    assert settings("resnet-56")["survival"] == 1.0
    assert settings("densenet-40-12")["bottleneck"] is False
    assert settings("densenet-bc-100-12")["bottleneck"] is True
    assert settings("shake-shake-26-2x96d") == {"depth": 26, "width": 96}
    assert settings("shake-shake-29-2x4x64d")["backward_mode"] == "even"
    assert isinstance(build("wrn-10-1"), WideResNet)


@pytest.mark.parametrize(
    ("name", "overrides", "error", "message"),
    [
        ("wrn28-10", {}, ValueError, "got 'wrn28-10'; did you mean wrn-28-10"),
        ("", {}, ValueError, "got ''"),
        (5, {}, TypeError, "model should be a str, but got 5"),
        ("wrn-17-2", {}, ValueError, r"depth should be 6n + 4 (nearest: 16 or 22), but got 17"),
        ("wrn-4-2", {}, ValueError, "depth should be at least 10, but got 4"),
        ("wrn-16-0", {}, ValueError, "width should be at least 1, but got 0"),
        ("resnet-21", {}, ValueError, r"depth should be 6n + 2 (nearest: 20 or 26), but got 21"),
        ("wide-resnet-16-2-original-unit", {}, ValueError, "did you mean wide-resnet-16-2"),
        ("wrn-16-2", {"drop": 0.1}, TypeError, "takes no argument 'drop'; it takes depth, width, unit, dropout"),
        ("wrn-16-2", {"dropout": 1.0}, ValueError, "dropout should be below 1, but got 1.0"),
        ("wrn-16-2", {"dropout": float("nan")}, ValueError, "dropout should be between 0 and 1.0, but got nan"),
        ("wrn-16-2", {"dropout": "0.3"}, TypeError, "dropout should be a real number, but got '0.3' of type str"),
        ("wrn-16-2", {"unit": "preact"}, ValueError, "unit should be one of original, bn_after_addition"),
        ("resnet-20", {"survival": 0}, ValueError, "survival should be above 0 and at most 1.0, but got 0"),
        ("densenet-bc-40-12", {"bottleneck": 1}, TypeError, "bottleneck should be True or False, but got 1"),
        ("shake-shake-8-2x8d", {"backward_mode": "keep"}, ValueError, "backward_mode should be one of shake, even"),
        ("wrn-10-1", {"in_channels": 0}, ValueError, "in_channels should be at least 1, but got 0"),
        ("wrn-10-1", {"num_classes": 1}, ValueError, "num_classes should be at least 2, but got 1"),
        ("wrn-10-1", {"num_classes": 10.0}, TypeError, "num_classes should be an int, but got 10.0 of type float"),
        ("wrn-10-1", {"image_size": 4}, ValueError, "image_size should be at least 8, but got 4"),
    ],
)
def test_bad_arguments(name: str, overrides: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        build(name, **overrides)
