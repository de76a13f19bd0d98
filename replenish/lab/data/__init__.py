"""Datasets in memory and the batches that the lab trains from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replenish.lab.data.dataset import DataError, Dataset
from replenish.lab.data.known_datasets import DATASETS, KnownDataset
from replenish.lab.data.load import load
from replenish.lab.data.own_data import as_dataset
from replenish.lab.data.smaller_dataset import reduce

if TYPE_CHECKING:
    from replenish.lab.data.augment import Augmentation
    from replenish.lab.data.batches import Batches
    from replenish.lab.data.image_store import ImageStore

__all__ = [
    "DATASETS",
    "Augmentation",
    "Batches",
    "DataError",
    "Dataset",
    "ImageStore",
    "KnownDataset",
    "as_dataset",
    "load",
    "reduce",
]

# These need torch, which takes seconds to import; looking at data or downloading it should not.
_NEED_TORCH = {"Augmentation": "augment", "Batches": "batches", "ImageStore": "image_store"}


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_NEED_TORCH[name]}"), name)


def __dir__() -> list[str]:
    return __all__
