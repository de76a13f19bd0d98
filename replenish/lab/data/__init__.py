"""Datasets in memory and the batches that the lab trains from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replenish.lab.data.dataset import DataError, Dataset
from replenish.lab.data.load import load
from replenish.lab.data.reduction import reduce

if TYPE_CHECKING:
    from replenish.lab.data.augment import Augmentation
    from replenish.lab.data.batches import Batches
    from replenish.lab.data.store import ImageStore

__all__ = ["Augmentation", "Batches", "DataError", "Dataset", "ImageStore", "load", "reduce"]

# These need torch, which takes seconds to import; looking at data or downloading it should not.
_NEED_TORCH = {"Augmentation": "augment", "Batches": "batches", "ImageStore": "store"}


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_NEED_TORCH[name]}"), name)


def __dir__() -> list[str]:
    return __all__
