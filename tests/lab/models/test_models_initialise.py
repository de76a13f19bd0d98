"""The weights that networks start with, as docs/deviations.md describes them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from replenish.lab.models import build
from replenish.lab.models.thin import HighwayConv


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    # Large ones only, where the spread of the weights is known to some per cent.
    return [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 4000]


@pytest.mark.parametrize(
    ("name", "fan"),
    [
        ("wrn-10-1", 0),
        ("resnet-8", 0),
        ("densenet-bc-22-12", 0),
        ("shake-shake-8-2x16d", 0),
        ("nin", 1),
        ("all-cnn", 1),
    ],
)
def test_convolutions_have_he_et_als_spread(name: str, fan: int) -> None:
    torch.manual_seed(0)
    for conv in convolutions(build(name)):
        connections = conv.weight.shape[fan] * conv.weight[0, 0].numel()
        assert conv.weight.std().item() == pytest.approx(math.sqrt(2 / connections), rel=0.06)
        assert conv.weight.mean().item() == pytest.approx(0, abs=0.1 * math.sqrt(2 / connections))


def test_biases_and_normalizations() -> None:
    for name in ("wrn-10-1", "nin", "dsn", "fitnet"):
        for key, parameter in build(name).named_parameters():
            if key.endswith("bias"):
                assert (parameter == 0).all(), key
    for module in build("wrn-10-1").modules():
        if isinstance(module, nn.BatchNorm2d):
            assert (module.weight == 1).all()


def test_highway_gates_start_nearly_closed() -> None:
    torch.manual_seed(0)
    layers = [m for m in build("highway").modules() if isinstance(m, HighwayConv)]
    assert len(layers) == 14
    for layer in layers:
        channels = layer.conv.in_channels
        assert (layer.conv.bias[:channels] == 0).all()
        assert (layer.conv.bias[channels:] == -2).all()
        bound = math.sqrt(6 / (2 * 9 * channels))  # Glorot's, for each half as a convolution of its own.
        assert 0.9 * bound < layer.conv.weight.abs().max() <= bound
    x = torch.randn(2, 32, 8, 8)
    carried = torch.nn.functional.cosine_similarity(layers[0](x).flatten(), x.flatten(), dim=0)
    assert carried > 0.9
