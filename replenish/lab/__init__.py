"""The lab: the paper's networks, data, training and experiments.

`RunConfig` says what to run, `train` runs it, and `load_network` brings back what it trained. `compare` answers whether
an order helps on some data, `compare_trainings` for a training of your own. They are imported when first used, since
torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replenish.lab.comparison import Comparison, compare
    from replenish.lab.config import Hardware, RunConfig
    from replenish.lab.training import load_network, train
    from replenish.lab.trainings import compare_trainings

__all__ = ["Comparison", "Hardware", "RunConfig", "compare", "compare_trainings", "load_network", "train"]

_HOMES = {
    "Comparison": "comparison",
    "Hardware": "config",
    "RunConfig": "config",
    "compare": "comparison",
    "compare_trainings": "trainings",
    "load_network": "training",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
