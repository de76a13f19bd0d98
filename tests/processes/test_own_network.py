"""A network named by the place of its code, `module:function`, in runs that are separate processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NETWORK = """
from torch import nn

def small(in_channels, num_classes, image_size, dropout=0.0):
    size = in_channels * image_size * image_size
    return nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(size, num_classes))
"""


@pytest.mark.slow
def test_a_network_by_the_place_of_its_code(tmp_path: Path) -> None:
    """In separate processes, with every option of the training."""
    (tmp_path / "networks.py").write_text(NETWORK)
    words = "digits --model networks:small --orders reshuffling,srs --seeds 1 --epochs 2 --jobs 2 --json --metric loss"
    words += " --optimizer sgd --nesterov --momentum 0.8 --weight-decay 0.001 --label-smoothing 0.1 --dropout 0.2"
    words += (
        " --schedule cosine --warm-up 0.5 --learning-rate 0.05 --learning-rate srs=0.1 --test-every 2 --clean-every 1"
    )
    command = [sys.executable, "-m", "replenish", "compare", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metric"] == "Test loss"
    assert set(found["values"]["srs"]) == {"0"}
    config = json.loads(next(tmp_path.glob("runs/*-srs-*/seed0/config.json")).read_text())
    model, _, digest = config["model"].partition("@")
    assert (model, len(digest)) == ("networks:small", 8)
    for name, value in {
        "nesterov": True,
        "momentum": 0.8,
        "weight_decay": 0.001,
        "label_smoothing": 0.1,
        "dropout": 0.2,
        "schedule": "cosine",
        "warm_up_epochs": 0.5,
        "learning_rate": 0.1,
        "test_every": 2,
        "clean_every": 1,
    }.items():
        assert config[name] == value

    # Changed code under the same name is another network.
    (tmp_path / "networks.py").write_text(NETWORK.replace("nn.Flatten(), ", "nn.Flatten(), nn.ReLU(), "))
    command[command.index("--jobs") + 1] = "1"
    again = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert len(list(tmp_path.rglob("result.json"))) == 4
