"""Own networks that would train otherwise have other names; one that is made again has the same."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from replenish.lab.models.identity import network_name


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


def closed_over(scale: float) -> Callable[[], nn.Module]:
    class Scaled(Net):
        def forward(self, images: Tensor) -> Tensor:
            return scale * super().forward(images)

    return lambda: Scaled(p=scale)


def test_what_trains_otherwise_has_another_name() -> None:
    makers: list[Callable[[], nn.Module]] = [
        Net,
        lambda: Net(dropout=0.5),
        lambda: Net(act=torch.tanh),
        functools.partial(Net, p=0.4),
        Doubled,
        lambda: nn.Sequential(nn.Linear(4, 2)),
        lambda: nn.Sequential(nn.Linear(4, 2), nn.ReLU()),
        lambda: nn.Sequential(nn.Linear(4, 2), nn.GELU()),
        closed_over(0.25),
        closed_over(0.75),
    ]
    names = [network_name(make) for make in makers]
    assert len(set(names)) == len(names)
    assert [network_name(make) for make in makers] == names


def test_the_name_is_the_same_in_another_process() -> None:
    script = (
        "from torch import nn; from replenish.lab.models.identity import network_name; "
        "print(network_name(lambda: nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.3))))"
    )
    names = {subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(names) == 1
    assert next(iter(names)).startswith("Sequential@")


def test_what_makes_no_network_is_refused() -> None:
    with pytest.raises(TypeError, match="model should return a torch.nn.Module, but it returned a int"):
        network_name(lambda: 3)  # type: ignore[arg-type, return-value]
