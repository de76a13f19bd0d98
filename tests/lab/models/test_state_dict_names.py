"""Names and shapes of every network's weights are a promise: checkpoints and shared weights are read by them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch

from replenish.lab.models import MODELS, UNITS, build

#: A digest of the names, types and shapes for each network; a change of one needs a reader for what was saved before.
PINNED: dict[str, dict[str, str | int]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "state_dicts.json").read_text()
)
NAMES = [*MODELS, *(f"wide-resnet-10-1-{unit.replace('_', '-')}" for unit in UNITS)]


def weights_of(name: str) -> dict[str, str | int]:
    with torch.device("meta"):
        state = build(name, num_classes=100).state_dict()
    lines = [f"{key} {str(value.dtype).removeprefix('torch.')} {list(value.shape)}" for key, value in state.items()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {"first": lines[0], "last": lines[-1], "count": len(lines), "sha256": digest}


@pytest.mark.parametrize("name", NAMES)
def test_names_types_and_shapes_stay(name: str) -> None:
    assert weights_of(name) == PINNED[name]


def test_every_network_is_pinned() -> None:
    assert list(PINNED) == NAMES
