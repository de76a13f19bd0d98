"""`torch.hub` loads the networks from a checkout with only torch and numpy."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from replenish.lab.models import MODELS, WideResNet
from replenish.lab.models.resnet import UNITS

ROOT = Path(__file__).parents[3]

WITH_TORCH_ALONE = """
import sys
for name in ("lightning_fabric", "matplotlib", "rich", "scipy", "sklearn", "typer"):
    sys.modules[name] = None
import torch
print(type(torch.hub.load(sys.argv[1], "wrn-10-1", source="local")).__name__)
"""


def load(*arguments: str, **options: object) -> torch.nn.Module:
    network = torch.hub.load(str(ROOT), *arguments, source="local", **options)
    assert isinstance(network, torch.nn.Module)
    return network


def test_wrn_28_10_has_batch_norm_after_the_addition() -> None:
    with torch.device("meta"):
        network = load("wrn-28-10", num_classes=100)
    assert isinstance(network, WideResNet)
    assert isinstance(network.stages[0][1], UNITS["bn_after_addition"])
    assert round(sum(parameter.numel() for parameter in network.parameters()) / 1e6, 1) == 36.5


def test_every_network_is_there_with_its_options() -> None:
    offered = runpy.run_path(str(ROOT / "hubconf.py"))
    assert all(", ".join(entry.options()) in offered[name].__doc__ for name, entry in MODELS.items())


def test_arguments_reach_the_network() -> None:
    network = load("build", "wrn-10-1", in_channels=1, num_classes=7, image_size=8, dropout=0.0)
    assert network(torch.zeros(2, 1, 8, 8)).shape == (2, 7)
    with pytest.raises(TypeError, match="wrn-10-1 takes no argument 'pretrained'"):
        load("wrn-10-1", pretrained=True)


def test_only_torch_is_needed() -> None:
    command = [sys.executable, "-c", WITH_TORCH_ALONE, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "WideResNet\n", done.stderr
