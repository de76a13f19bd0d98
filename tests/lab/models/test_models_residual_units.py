"""The five residual units, against figure 4 of He et al. written out as strings of operations."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from replenish.lab.models import UNITS, WideResNet

# Before the addition, after it; then the same for what stands behind the first convolution and at the end.
FIGURE_4 = {
    "original": ("conv1 bn1 relu conv2 bn2", "relu", "bn relu", ""),
    "bn_after_addition": ("conv1 bn1 relu conv2", "bn2 relu", "bn relu", ""),
    "relu_before_addition": ("conv1 bn1 relu conv2 bn2 relu", "", "bn relu", ""),
    "relu_only_preactivation": ("relu conv1 bn1 relu conv2 bn2", "", "bn", "relu"),
    "full_preactivation": ("bn1 relu conv1 bn2 relu conv2", "", "", "bn relu"),
}


def apply(ops: str, x: Tensor, weights: dict[str, Tensor], prefix: str, stride: int, training: bool) -> Tensor:
    for op in ops.split():
        if op == "relu":
            x = x.clamp(min=0)
        elif op.startswith("conv"):
            x = F.conv2d(x, weights[f"{prefix}{op}.weight"], stride=stride if op == "conv1" else 1, padding=1)
        else:
            key = prefix + ("1" if op == "bn" and prefix == "stem." else "0" if op == "bn" else op)
            statistics = (None, None) if training else (weights[f"{key}.running_mean"], weights[f"{key}.running_var"])
            x = F.batch_norm(x, *statistics, weights[f"{key}.weight"], weights[f"{key}.bias"], training)
    return x


def functional(x: Tensor, weights: dict[str, Tensor], unit: str, units: int, training: bool) -> Tensor:
    before, after, stem, tail = FIGURE_4[unit]
    x = apply(stem, F.conv2d(x, weights["stem.0.weight"], padding=1), weights, "stem.", 1, training)
    for stage in range(3):
        for index in range(units):
            prefix, stride = f"stages.{stage}.{index}.", 2 if stage and not index else 1
            shortcut = x
            if f"{prefix}shortcut.weight" in weights:
                first_conv = before.index("conv1")
                shortcut = apply(before[:first_conv], x, weights, prefix, 1, training)
                shortcut = F.conv2d(shortcut, weights[f"{prefix}shortcut.weight"], stride=stride)
            x = apply(
                after, apply(before, x, weights, prefix, stride, training) + shortcut, weights, prefix, 1, training
            )
    x = apply(tail, x, weights, "tail.", 1, training)
    return x.mean((2, 3)) @ weights["classifier.weight"].T + weights["classifier.bias"]


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("unit", FIGURE_4)
def test_units_are_those_of_figure_4(unit: str, width: int, training: bool) -> None:
    torch.manual_seed(3)
    model = WideResNet(3, 7, depth=16, width=width, unit=unit).double()
    for name, value in model.state_dict().items():
        if "running_var" in name:
            value.uniform_(0.5, 1.5)
        elif "bn" in name or "running_mean" in name:
            value.copy_(1 + 0.3 * torch.randn_like(value.double()))
    images = torch.randn(6, 3, 12, 12, dtype=torch.double)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    expected = functional(images, weights, unit, units=2, training=training)
    torch.testing.assert_close(model.train(training)(images), expected)


def test_all_five_are_there_and_have_equally_many_parameters() -> None:
    assert list(UNITS) == list(FIGURE_4)
    sizes = {sum(p.numel() for p in WideResNet(depth=10, width=2, unit=unit).parameters()) for unit in UNITS}
    assert len(sizes) == 1


@pytest.mark.parametrize("unit", UNITS)
def test_dropout_stands_between_the_convolutions(unit: str) -> None:
    torch.manual_seed(0)
    layer = UNITS[unit](4, 4, dropout=0.3)
    seen: list[Tensor] = []
    layer.dropout.register_forward_hook(lambda module, inputs, output: seen.extend((inputs[0], output)))
    layer.conv2.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    layer(torch.randn(64, 4, 8, 8))
    given, dropped, into_second = seen
    assert (given >= 0).all()  # Behind the ReLU,
    assert into_second is dropped  # in front of the second convolution.
    kept = (dropped != 0).double().mean() / (given != 0).double().mean()
    assert abs(kept.item() - 0.7) < 0.02
