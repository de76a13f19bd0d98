"""If your own network changes, its name changes, so earlier results are not reused. The same network keeps its name."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models.network_digest import network_name
from replenish.lab.models.own_sources import is_own_module


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0, act: Callable[[Tensor], Tensor] = torch.relu, p: float = 0.1) -> None:
        super().__init__()
        self.hidden, self.out, self.dropout = nn.Linear(4, 4), nn.Linear(4, 2), nn.Dropout(dropout)
        self.act, self.p = act, p

    def forward(self, images: Tensor) -> Tensor:
        return F.dropout(self.out(self.dropout(self.act(self.hidden(images)))), self.p, self.training)


class Doubled(Net):
    def forward(self, images: Tensor) -> Tensor:
        return 2 * super().forward(images)


def test_different_networks_have_different_names() -> None:
    makers: list[Callable[[], nn.Module]] = [
        Net,
        lambda: Net(dropout=0.5),
        lambda: Net(act=torch.tanh),
        functools.partial(Net, p=0.4),
        Doubled,
        lambda: nn.Sequential(nn.Linear(4, 2)),
        lambda: nn.Sequential(nn.Linear(4, 2), nn.ReLU()),
        lambda: nn.Sequential(nn.Linear(4, 2), nn.GELU()),
    ]
    names = [network_name(make) for make in makers]
    assert len(set(names)) == len(names)
    assert [network_name(make) for make in makers] == names


@dataclass
class Settings:
    p: float


class Configured(Net):
    def __init__(self, settings: object, private: float = 0.0, mask: float = 0.0) -> None:
        super().__init__()
        self.settings, self._private, self.scale = settings, private, torch.tensor(mask)
        self.register_buffer("mask", torch.tensor(mask), persistent=False)


def bound(value: object) -> Callable[[], nn.Module]:
    return lambda: Configured(value)


def scaled(scale: float) -> type[nn.Module]:
    class Scaled(Net):
        def forward(self, images: Tensor) -> Tensor:
            return scale * super().forward(images)

    return Scaled


def hooked(scale: float) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        network = Net()
        network.register_forward_hook(lambda module, images, output: output * scale)
        return network

    return make


def frozen(trained: bool) -> Callable[[], nn.Module]:
    return lambda: Net().requires_grad_(trained)


class Maker:
    def __init__(self, mask: float) -> None:
        self.mask = mask

    def __call__(self) -> nn.Module:
        return Configured(None, mask=self.mask)


def kept_lambda(tanh: bool) -> Callable[[Tensor], Tensor]:
    return (lambda images: torch.tanh(images)) if tanh else (lambda images: torch.relu(images))


def power(exponent: float) -> Callable[[Tensor], Tensor]:
    return lambda images: images**exponent


SQUARED, CUBED = power(2), power(3)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(bound([power(2), power(3)]), bound([power(2), power(4)]), id="one of several functions"),
        pytest.param(bound([SQUARED, CUBED, SQUARED]), bound([SQUARED, CUBED, CUBED]), id="a function twice"),
        pytest.param(bound({SQUARED, CUBED}), bound({SQUARED, power(4)}), id="set of functions"),
        pytest.param(bound(kept_lambda(True)), bound(kept_lambda(False)), id="lambda"),
        pytest.param(
            bound(functools.partial(F.leaky_relu, negative_slope=0.1)),
            bound(functools.partial(F.leaky_relu, negative_slope=0.2)),
            id="partial",
        ),
        pytest.param(bound(Settings(0.1)), bound(Settings(0.2)), id="dataclass"),
        pytest.param(bound(SimpleNamespace(p=0.1)), bound(SimpleNamespace(p=0.2)), id="namespace"),
        pytest.param(bound(torch.bfloat16), bound(torch.float16), id="type of numbers"),
        pytest.param(bound(np.zeros(3)), bound(np.ones(3)), id="array"),
        pytest.param(scaled(0.25), scaled(0.75), id="class that closes over a value"),
        pytest.param(hooked(0.25), hooked(0.75), id="hook"),
        pytest.param(frozen(True), frozen(False), id="weights that are not trained"),
        pytest.param(Maker(0.25), Maker(0.75), id="object that makes networks"),
        pytest.param(Maker(0.25).__call__, Maker(0.75).__call__, id="method"),
    ],
)
def test_an_attribute_of_any_kind_changes_the_name(
    first: Callable[[], nn.Module], second: Callable[[], nn.Module]
) -> None:
    assert network_name(first) != network_name(second)
    assert network_name(first) == network_name(first)


@pytest.mark.parametrize("name", ["_private", "scale", "mask"])
def test_private_settings_and_tensors_outside_the_checkpoint_change_the_name(name: str) -> None:
    def make() -> nn.Module:
        network = Configured(None)
        setattr(network, name, torch.tensor(chosen[0]))
        return network

    chosen = [1.0]
    before = network_name(make)
    chosen[0] = 2.0
    assert network_name(make) != before


def test_the_name_is_the_same_in_another_process() -> None:
    script = (
        "from torch import nn; from replenish.lab.models.network_digest import network_name; "
        "from torch.nn.utils.parametrizations import spectral_norm; "
        "print(network_name(lambda: nn.Sequential(spectral_norm(nn.Linear(4, 2)), nn.Dropout(0.3))))"
    )
    names = {subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(names) == 1
    assert next(iter(names)).startswith("Sequential@")


def test_a_function_that_returns_no_network_is_refused() -> None:
    with pytest.raises(TypeError, match="model should return a torch.nn.Module, but it returned a int"):
        network_name(lambda: 3)  # type: ignore[arg-type, return-value]


def test_a_module_beside_packages_that_pip_installed_is_still_your_own(tmp_path, monkeypatch):
    """As after `pip install --target .`. Its source must count, or old results would be reused after an edit."""
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "beside_packages.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert is_own_module("beside_packages")
