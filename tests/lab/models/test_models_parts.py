"""The networks' parts: residual units, companion losses, initial weights, shapes and layouts."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models import MODELS, UNITS, DeeplySupervisedNet, DenseNet, WideResNet, build, training_loss
from replenish.lab.models.plain import squared_hinge
from replenish.lab.models.thin import HighwayConv

# ---- The five residual units against figure 4 of He et al., written as strings of operations ----


# Operations before the addition, after the addition, after the first convolution, and at the end of the network.
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
def test_units_match_figure_4(unit: str, width: int, training: bool) -> None:
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


@pytest.mark.parametrize("unit", UNITS)
def test_dropout_is_between_the_convolutions(unit: str) -> None:
    torch.manual_seed(0)
    layer = UNITS[unit](4, 4, dropout=0.3)
    seen: list[Tensor] = []
    layer.dropout.register_forward_hook(lambda module, inputs, output: seen.extend((inputs[0], output)))
    layer.conv2.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    layer(torch.randn(64, 4, 8, 8))
    given, dropped, into_second = seen
    assert (given >= 0).all()  # After the ReLU,
    assert into_second is dropped  # before the second convolution.
    kept = (dropped != 0).double().mean() / (given != 0).double().mean()
    assert abs(kept.item() - 0.7) < 0.02


# ---- Companion losses and the training loss ----


def test_squared_hinge_by_hand() -> None:
    logits = torch.tensor([[2.0, 0.5, -3.0]])
    # Class 0 is right and beyond the margin; class 1 is inside it, class 2 beyond it.
    assert squared_hinge(logits, torch.tensor([0])).item() == pytest.approx((0 + 1.5**2 + 0) / 3)
    assert squared_hinge(logits, torch.tensor([1])).item() == pytest.approx((3**2 + 0.5**2 + 0) / 3)


def test_logits_do_not_depend_on_the_companions() -> None:
    torch.manual_seed(0)
    model = DeeplySupervisedNet(1, 10, 8, dropout=0.0)
    images, targets = torch.randn(3, 1, 8, 8), torch.tensor([0, 4, 9])
    logits, companions = model(images, targets)
    torch.testing.assert_close(model(images), logits)
    assert companions > 0
    model.companion_weight = 0.0
    assert model(images, targets)[1] == 0


def test_training_loss_adds_companions_if_there_are_any() -> None:
    torch.manual_seed(0)
    images, targets = torch.randn(3, 1, 8, 8), torch.tensor([0, 4, 9])
    model = DeeplySupervisedNet(1, 10, 8, dropout=0.0)
    logits, companions = model(images, targets)
    loss, same = training_loss(model, images, targets)
    torch.testing.assert_close(same, logits)
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets) + companions)

    wrapped = nn.Module()
    wrapped.module, wrapped.forward = model, model.forward
    torch.testing.assert_close(training_loss(wrapped, images, targets)[0], loss)

    plain = build("resnet-8", 1, 10, 8)
    loss, logits = training_loss(plain, images, targets, F.multi_margin_loss)
    torch.testing.assert_close(loss, F.multi_margin_loss(logits, targets))


# ---- Initial weights, as described in docs/deviations.md ----


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    # Only large ones, whose weights are enough to estimate the spread to a few per cent.
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


def test_highway_gates_start_nearly_closed() -> None:
    torch.manual_seed(0)
    layers = [m for m in build("highway").modules() if isinstance(m, HighwayConv)]
    assert len(layers) == 14
    for layer in layers:
        channels = layer.conv.in_channels
        assert (layer.conv.bias[:channels] == 0).all()
        assert (layer.conv.bias[channels:] == -2).all()
        bound = math.sqrt(6 / (2 * 9 * channels))  # Glorot's, with each half as a separate convolution.
        assert 0.9 * bound < layer.conv.weight.abs().max() <= bound
    x = torch.randn(2, 32, 8, 8)
    carried = torch.nn.functional.cosine_similarity(layers[0](x).flatten(), x.flatten(), dim=0)
    assert carried > 0.9


# ---- Every network on every supported size ----


# Small members of every family, with overrides. A test can afford to train them for a step.
SMALL: dict[str, dict[str, object]] = {
    "nin": {},
    "all-cnn": {},
    "dsn": {},
    "fitnet": {},
    "highway": {},
    "elu": {"width": 0.1},
    "resnet-8": {},
    "resnet-8-stochastic-depth": {"survival": 0.999},
    "shake-shake-8-2x8d": {},
    "shake-shake-11-2x4x4d": {},
    "densenet-bc-10-4": {"dropout": 0.2},
    "densenet-10-4": {},
    "wrn-10-1": {},
    "wide-resnet-10-2": {},
    "wide-resnet-10-1-relu-before-addition": {},
    "wide-resnet-10-2-relu-only-preactivation": {},
    "wide-resnet-10-2-full-preactivation": {},
}


@pytest.mark.parametrize("name", [name for name in MODELS if "1202" not in name])
def test_full_size_networks_on_all_sizes(name: str) -> None:
    for image_size, channels, classes in ((32, 3, 100), (16, 1, 2), (8, 3, 10)):
        with torch.device("meta"):
            model = build(name, channels, classes, image_size).eval()
        images = torch.empty(2, channels, image_size, image_size, device="meta")
        assert model(images).shape == (2, classes)


@pytest.mark.parametrize("name", SMALL)
def test_odd_sizes(name: str) -> None:
    for image_size, channels in ((9, 4), (11, 1), (12, 2)):
        model = build(name, channels, 5, image_size, **SMALL[name]).eval()
        assert model(torch.randn(2, channels, image_size, image_size)).shape == (2, 5)


@pytest.mark.parametrize(("image_size", "channels"), [(8, 1), (16, 3)])
@pytest.mark.parametrize("name", SMALL)
def test_gradients_reach_every_parameter(name: str, image_size: int, channels: int) -> None:
    torch.manual_seed(0)
    model = build(name, channels, 10, image_size, **SMALL[name])
    images = torch.randn(8, channels, image_size, image_size)
    loss, logits = training_loss(model, images, torch.arange(8))
    assert logits.shape == (8, 10)
    loss.backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize("name", SMALL)
def test_layouts_give_the_same_logits(name: str) -> None:
    torch.manual_seed(0)
    model = build(name, 3, 10, 8, **SMALL[name]).eval()
    images = torch.randn(4, 3, 8, 8)
    expected = model(images)
    torch.testing.assert_close(model(images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)), expected)
    torch.testing.assert_close(model.to(memory_format=torch.channels_last)(images), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_copies_and_state_dicts(name: str) -> None:
    model = build(name, 1, 10, 8, **SMALL[name])
    loss, _ = training_loss(model, torch.randn(4, 1, 8, 8), torch.arange(4))
    loss.backward()
    twin, other = copy.deepcopy(model).eval(), build(name, 1, 10, 8, **SMALL[name]).eval()
    other.load_state_dict(model.state_dict())
    images = torch.randn(2, 1, 8, 8)
    assert torch.equal(twin(images), model.eval()(images))
    assert torch.equal(other(images), model(images))


@pytest.mark.parametrize("bottleneck", [True, False])
def test_a_densenet_that_recomputes_trains_to_the_same_bits(bottleneck: bool) -> None:
    states = []
    for recompute in (False, True):
        torch.manual_seed(0)
        model = DenseNet(1, 4, depth=16, growth=4, bottleneck=bottleneck, dropout=0.2, recompute=recompute)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(model(torch.randn(8, 1, 8, 8)), torch.arange(8) % 4).backward()
            optimizer.step()
        states.append(model.state_dict())
    plain, recomputed = states
    assert all(torch.equal(value, recomputed[name]) for name, value in plain.items())


# torch instantiates a class against its own warning when it traces an autograd function.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("name", ["wrn-10-1", "shake-shake-8-2x8d"])
def test_dynamo_traces_them_whole(name: str) -> None:
    model = build(name, 1, 10, 8)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    compiled(torch.randn(2, 1, 8, 8)).sum().backward()
    torch._dynamo.reset()


# ---- Names and shapes of every network's weights are a promise: checkpoints and shared weights depend on them ----


#: A digest of names, types and shapes for each network. A change needs code that reads earlier checkpoints.
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
