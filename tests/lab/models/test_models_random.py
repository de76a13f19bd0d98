"""The random parts of the networks: expectations and independence of stochastic depth, Shake-Shake and dropout."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from replenish.lab.models import ResNet
from replenish.lab.models.layers import Dropout
from replenish.lab.models.resnet import PaddedShortcut, StochasticDepthUnit
from replenish.lab.models.shake_shake import ShakeShake


def test_survival_decays_linearly() -> None:
    units = [m for m in ResNet(depth=110, survival=0.5).modules() if isinstance(m, StochasticDepthUnit)]
    survivals = [unit.survival for unit in units]
    assert len(survivals) == 54
    assert survivals[0] == pytest.approx(1 - 0.5 / 54)
    assert survivals[-1] == 0.5
    steps = [a - b for a, b in itertools.pairwise(survivals)]
    assert steps == pytest.approx([0.5 / 54] * 53)


def frozen_unit(survival: float) -> StochasticDepthUnit:
    torch.manual_seed(1)
    unit = StochasticDepthUnit(4, 4, 1, survival, PaddedShortcut)
    for bn in (unit.bn1, unit.bn2):
        nn.init.normal_(bn.weight)
        bn.eval()  # Its statistics are fixed, so only the draw is random.
    return unit


def test_training_averages_to_evaluation() -> None:
    unit = frozen_unit(survival=0.7)
    x = 100 + torch.randn(2, 4, 8, 8)  # Far from zero, where the last ReLU is linear.
    with torch.no_grad():
        draws = 4000
        whole = torch.relu(unit.branch(x) + x)
        outputs = [unit(x) for _ in range(draws)]
        alive = sum(torch.equal(output, whole) for output in outputs)
        assert all(torch.equal(output, whole) or torch.equal(output, x) for output in outputs)
        # Five standard deviations of a binomial count.
        assert abs(alive - 0.7 * draws) < 5 * math.sqrt(draws * 0.7 * 0.3)
        unit.eval()
        expected = x + 0.7 * unit.branch(x)
        torch.testing.assert_close(unit(x), expected)


def test_a_dropped_branch_is_not_computed_and_changes_nothing() -> None:
    torch.manual_seed(0)
    unit = StochasticDepthUnit(4, 8, 2, 1e-9, PaddedShortcut)
    before = {name: value.clone() for name, value in unit.state_dict().items()}
    unit.conv1.register_forward_hook(lambda *_: pytest.fail("the branch was computed"))
    x = torch.randn(2, 4, 8, 8, requires_grad=True)
    out = unit(x)
    out.sum().backward()
    assert out.shape == (2, 8, 4, 4)
    assert torch.equal(out[:, :4], x[:, :, ::2, ::2].relu())
    assert (out[:, 4:] == 0).all()
    assert all(parameter.grad is None for parameter in unit.parameters())
    assert all(torch.equal(value, before[name]) for name, value in unit.state_dict().items())


def weights(mix: ShakeShake, batch: int = 4096) -> tuple[Tensor, Tensor]:
    """Return the forward and the backward weight of each image, from the output and the gradient of the mix."""
    first = torch.ones(batch, 1, 2, 2, requires_grad=True)
    second = torch.zeros(batch, 1, 2, 2, requires_grad=True)
    out = mix(first, second)
    out.backward(torch.ones_like(out))
    assert first.grad is not None
    assert second.grad is not None
    torch.testing.assert_close(first.grad + second.grad, torch.ones_like(out))
    assert (out == out[:, :, :1, :1]).all()  # One weight for the whole image.
    return out.detach()[:, 0, 0, 0], first.grad[:, 0, 0, 0]


def assert_uniform(sample: Tensor) -> None:
    n = len(sample)
    assert sample.min() >= 0
    assert sample.max() <= 1
    assert abs(sample.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n)
    # Kolmogorov-Smirnov: P(D > 2.3 / sqrt(n)) is 5e-5.
    ideal = (torch.arange(n) + 0.5) / n
    assert (sample.sort().values - ideal).abs().max() < 2.3 / math.sqrt(n)


def test_shake_shake() -> None:
    torch.manual_seed(0)
    alpha, beta = weights(ShakeShake())
    assert_uniform(alpha)
    assert_uniform(beta)
    # The backward weight is independent of the forward one.
    assert abs(torch.corrcoef(torch.stack((alpha, beta)))[0, 1]) < 5 / math.sqrt(len(alpha))


def test_shake_even() -> None:
    torch.manual_seed(0)
    alpha, beta = weights(ShakeShake("even"))
    assert_uniform(alpha)
    assert (beta == 0.5).all()


def test_evaluation_is_the_expectation_and_draws_nothing() -> None:
    torch.manual_seed(0)
    mix = ShakeShake()
    first, second = torch.randn(5000, 2, 1, 1), torch.randn(2, 1, 1).expand(5000, 2, 1, 1)
    first = first[:1].expand(5000, 2, 1, 1)
    mean = mix(first, second).mean(0)
    state = torch.get_rng_state()
    even = mix.eval()(first, second)[0]
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(even, (first[0] + second[0]) / 2)
    assert (mean - even).abs().max() < 5 * (first - second).abs().max() * math.sqrt(1 / 12 / 5000)


@pytest.mark.parametrize("last", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate(p: float, last: bool) -> None:
    torch.manual_seed(0)
    x = torch.full((16, 7, 31, 29), 2.0, requires_grad=True)  # An odd number of values.
    given = x.contiguous(memory_format=torch.channels_last) if last else x
    out = Dropout(p)(given)
    assert out.stride() == given.stride()
    kept = out != 0
    n = x.numel()
    assert abs(kept.sum().item() - n * (1 - p)) < 5 * math.sqrt(n * p * (1 - p))
    scale = out[kept]
    torch.testing.assert_close(scale, torch.full_like(scale, 2 / (1 - p)), rtol=1e-4, atol=0)
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach() / 2)
    # Neighbours in memory use the same random word, but are independent.
    flat = kept.double().permute(0, 2, 3, 1).flatten() if last else kept.double().flatten()
    for lag in (1, 2, 3, 4):
        correlation = torch.corrcoef(torch.stack((flat[lag:], flat[:-lag])))[0, 1]
        assert abs(correlation) < 5 / math.sqrt(n)


def test_dropout_with_a_seed_in_evaluation_and_on_other_layouts() -> None:
    x = torch.randn(4, 3, 5, 5)
    layer = Dropout(0.3)
    torch.manual_seed(5)
    first = layer(x)
    torch.manual_seed(5)
    assert torch.equal(layer(x), first)
    assert torch.equal(layer.eval()(x), x)
    layer.train()
    assert layer(x[:, :, ::2]).shape == (4, 3, 3, 5)  # Not dense in memory: torch's own kernel.
    assert layer(torch.randn(4, 500)).shape == (4, 500)
    assert layer(x.to("meta")).shape == x.shape
    assert torch.equal(Dropout(0.0)(x), x)
    with pytest.raises(ValueError, match="dropout should be below 1, but got 1.0"):
        Dropout(1.0)
