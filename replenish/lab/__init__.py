"""The lab: the paper's networks, data, training and experiments.

`RunConfig` says what to run, `train` runs it, and `compare` answers whether an order helps on some data;
`compare_trainings` answers it for a training of your own. They are imported when first used, since torch takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from replenish.lab.comparison import Comparison, compare
    from replenish.lab.config import Hardware, RunConfig
    from replenish.lab.training import train
    from replenish.lab.trainings import compare_trainings

__all__ = ["Comparison", "Hardware", "RunConfig", "compare", "compare_trainings", "train"]

_HOMES = {
    "Comparison": "comparison",
    "Hardware": "config",
    "RunConfig": "config",
    "compare": "comparison",
    "compare_trainings": "trainings",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
