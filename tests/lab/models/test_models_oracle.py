"""The networks against pytorchcv's for CIFAR: the same parameters, and the same outputs with the same weights."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models import DenseNet, NetworkInNetwork, ResNet, ShakeShakeNet, WideResNet, resnet

reason = "pytorchcv, the oracle of the networks, is not installed (`pip install --no-deps pytorchcv==0.0.74`)"
pytest.importorskip("pytorchcv", reason=reason)

from pytorchcv.models.densenet_cifar import get_densenet_cifar  # noqa: E402
from pytorchcv.models.nin_cifar import nin_cifar10, nin_cifar100  # noqa: E402
from pytorchcv.models.resnet_cifar import get_resnet_cifar  # noqa: E402
from pytorchcv.models.shakeshakeresnet_cifar import CIFARShakeShakeResNet, get_shakeshakeresnet_cifar  # noqa: E402
from pytorchcv.models.wrn_cifar import get_wrn_cifar  # noqa: E402

Rules = list[tuple[str, str | Callable[[re.Match[str]], str]]]


def stage_unit(match: re.Match[str]) -> str:
    return f"stages.{int(match[1]) - 1}.{int(match[2]) - 1}."


HEAD: Rules = [
    (r"^output\.", "classifier."),
    (r"^features\.post_activ\.bn\.", "tail.0."),
    (r"^features\.stage(\d+)\.unit(\d+)\.", stage_unit),
]
PLAIN: Rules = [
    *HEAD,
    (r"^features\.init_block\.conv\.", "stem.0."),
    (r"^features\.init_block\.bn\.", "stem.1."),
    (r"^features\.init_block\.", "stem.0."),
    (r"body\.conv(\d)\.conv\.", r"conv\1."),
    (r"body\.conv(\d)\.bn\.", r"bn\1."),
    (r"identity_conv\.conv\.", "shortcut.0."),
    (r"identity_conv\.bn\.", "shortcut.1."),
    (r"identity_conv\.weight", "shortcut.weight"),
]
SHAKE: Rules = [
    *PLAIN,
    (r"branch(\d)\.conv(\d)\.conv\.", lambda m: f"branch{m[1]}.{3 * int(m[2]) - 3}."),
    (r"branch(\d)\.conv(\d)\.bn\.", lambda m: f"branch{m[1]}.{3 * int(m[2]) - 2}."),
    (r"identity_branch\.", "shortcut."),
]


def dense(layers: int) -> Rules:
    """Return the rules for DenseNet. Ours is flat: convolution, layers, [transition, pooling, layers] twice."""

    def unit(match: re.Match[str]) -> str:
        index = (int(match[1]) - 1) * (layers + 2) + int(match[2])
        return f"features.{index}.{int(match[3]) - 1}."

    return [
        (r"^features\.init_block\.", "features.0."),
        (r"^features\.stage(\d+)\.unit(\d+)\.conv(\d)\.", unit),
        (r"^features\.stage(\d+)\.trans\d+\.conv\.", lambda m: f"features.{(int(m[1]) - 1) * (layers + 2) - 1}."),
        *HEAD,
    ]


def lively(model: nn.Module) -> nn.Module:
    """Give every normalization random statistics and scales, so that a mistake shows."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.3)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.3)
    return model


def map_weights(theirs: nn.Module, ours: nn.Module, rules: Rules) -> None:
    mapped = {}
    for key, value in theirs.state_dict().items():
        for pattern, replacement in rules:
            key = re.sub(pattern, replacement, key)
        mapped[key] = value.clone()
    ours.load_state_dict(mapped, strict=True)


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def gradients(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    model.zero_grad()
    F.cross_entropy(model(images), targets).backward()
    return torch.cat([parameter.grad.flatten().sort().values for parameter in model.parameters()]).sort().values


def projected(classes: int = 10, depth: int = 110) -> nn.Module:
    """Return our ResNet with pytorchcv's shortcuts: a 1x1 convolution and BN instead of padding with zeros."""

    def shortcut(inside: int, outside: int, stride: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resnet, "PaddedShortcut", shortcut)
        return ResNet(3, classes, depth=depth)


SMALL = {
    "wrn-16-2": (
        lambda: get_wrn_cifar(10, blocks=16, width_factor=2),
        lambda: WideResNet(3, 10, depth=16, width=2, unit="full_preactivation"),
        PLAIN,
    ),
    "wrn-10-1": (  # Width 1: the first unit keeps its shape.
        lambda: get_wrn_cifar(100, blocks=10, width_factor=1),
        lambda: WideResNet(3, 100, depth=10, width=1, unit="full_preactivation"),
        PLAIN,
    ),
    "resnet-20": (
        lambda: get_resnet_cifar(10, blocks=20, bottleneck=False),
        lambda: projected(depth=20),
        PLAIN,
    ),
    "densenet-bc-22-6": (
        lambda: get_densenet_cifar(10, blocks=22, growth_rate=6, bottleneck=True),
        lambda: DenseNet(3, 10, depth=22, growth=6),
        dense(3),
    ),
}


@pytest.mark.parametrize("case", SMALL)
def test_outputs_in_evaluation(case: str) -> None:
    make_theirs, make_ours, rules = SMALL[case]
    torch.manual_seed(7)
    theirs, ours = lively(make_theirs()).eval(), make_ours().eval()
    assert size(theirs) == size(ours)
    map_weights(theirs, ours, rules)
    images = torch.randn(5, 3, 32, 32)
    with torch.no_grad():
        expected = theirs(images)
        assert expected.std() > 0.01  # Nearly constant outputs would prove little.
        torch.testing.assert_close(ours(images), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["wrn-16-2", "resnet-20", "densenet-bc-22-6"])
def test_outputs_gradients_and_statistics_in_training(case: str) -> None:
    make_theirs, make_ours, rules = SMALL[case]
    torch.manual_seed(8)
    # In double precision: with float32, rounding of the batch statistics would hide small differences.
    theirs, ours = lively(make_theirs()).double(), make_ours().double()
    map_weights(theirs, ours, rules)
    images, targets = torch.randn(4, 3, 32, 32, dtype=torch.double), torch.randint(0, 10, (4,))
    torch.testing.assert_close(gradients(ours, images, targets), gradients(theirs, images, targets))
    again = make_ours().double()
    map_weights(theirs, again, rules)
    for key, value in ours.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[key])


@pytest.mark.parametrize("cardinality", [None, 1])
def test_shake_shake_with_the_relu_before_the_branches(cardinality: int | None) -> None:
    """With pytorchcv's ReLUs moved from after the addition to Gastaldi's places, its network equals our default."""
    torch.manual_seed(9)
    if cardinality is None:
        theirs = get_shakeshakeresnet_cifar(10, blocks=14, bottleneck=False, first_stage_channels=8)
    else:
        theirs = CIFARShakeShakeResNet([[32], [64], [128]], init_block_channels=64, bottleneck=True)
    lively(theirs).eval()
    depth = 14 if cardinality is None else 11
    ours = ShakeShakeNet(3, 10, depth=depth, width=8, cardinality=cardinality).eval()
    map_weights(theirs, ours, SHAKE)

    theirs.features.init_block.activ = nn.Identity()
    theirs.features.final_pool = nn.Sequential(nn.ReLU(), theirs.features.final_pool)
    for stage in (theirs.features.stage1, theirs.features.stage2, theirs.features.stage3):
        for unit in stage:
            unit.activ = nn.Identity()
            for name in ("branch1", "branch2", "identity_branch"):
                if hasattr(unit, name):
                    setattr(unit, name, nn.Sequential(nn.ReLU(), getattr(unit, name)))
    images = torch.randn(5, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(ours(images), theirs(images), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda: get_wrn_cifar(10, 28, 10), lambda: WideResNet(3, 10, unit="full_preactivation")),
        (lambda: get_wrn_cifar(100, 70, 10), lambda: WideResNet(3, 100, depth=70, unit="full_preactivation")),
        (lambda: get_resnet_cifar(10, 110, False), lambda: projected()),
        (lambda: get_resnet_cifar(100, 1202, False), lambda: projected(classes=100, depth=1202)),
        (lambda: get_densenet_cifar(100, 190, 40, True), lambda: DenseNet(3, 100)),
        (lambda: get_densenet_cifar(10, 40, 12, True), lambda: DenseNet(3, 10, depth=40, growth=12)),
        (lambda: get_shakeshakeresnet_cifar(10, 26, False, 96), lambda: ShakeShakeNet(3, 10)),
        (lambda: nin_cifar10(), lambda: NetworkInNetwork(3, 10)),
        (lambda: nin_cifar100(), lambda: NetworkInNetwork(3, 100)),
    ],
    ids=["wrn-28", "wrn-70", "resnet-110", "resnet-1202", "dn-190", "dn-40", "shake-26", "nin-10", "nin-100"],
)
def test_full_size_parameter_counts(theirs: Callable[[], nn.Module], ours: Callable[[], nn.Module]) -> None:
    with torch.device("meta"):
        assert size(ours()) == size(theirs())
