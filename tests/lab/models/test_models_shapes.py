"""Every network on every size it promises; gradients to every parameter; layouts; copies."""

from __future__ import annotations

import copy

import pytest
import torch

from replenish.lab.models import MODELS, build, training_loss

# Small members of every family, with their overrides, that a test can train a step of.
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


def test_networks_learn() -> None:
    """A few steps lower the loss on a fixed batch, for each family that has normalization."""
    for name in ("wrn-10-1", "resnet-8", "densenet-bc-10-4", "shake-shake-8-2x8d"):
        torch.manual_seed(0)
        overrides: dict[str, object] = {"dropout": 0.0} if name == "wrn-10-1" else {}
        model = build(name, 1, 4, 8, **overrides)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        images, targets = torch.randn(16, 1, 8, 8), torch.arange(16) % 4
        losses = []
        for _ in range(25):
            loss, _ = training_loss(model, images, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0], name


# torch itself instantiates the class that it warns should not be instantiated, when it meets an autograd function.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("name", ["wrn-10-1", "shake-shake-8-2x8d"])
def test_dynamo_traces_them_whole(name: str) -> None:
    model = build(name, 1, 10, 8)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    compiled(torch.randn(2, 1, 8, 8)).sum().backward()
    torch._dynamo.reset()
