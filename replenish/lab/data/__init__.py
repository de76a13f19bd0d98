"""Datasets in memory and the batches that the lab trains from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replenish.deferred import attributes as _attributes
from replenish.lab.data.augment import Augmentation
from replenish.lab.data.dataset import DataError, Dataset
from replenish.lab.data.load import DATASETS, KnownDataset, load
from replenish.lab.data.own_data import as_dataset
from replenish.lab.data.smaller_dataset import reduce

if TYPE_CHECKING:
    from replenish.lab.data.batches import Batches, ImageStore
else:  # these import torch, which takes seconds and is not needed to download data or look at them
    __getattr__, _, _ = _attributes(__name__, {"Batches": "batches", "ImageStore": "batches"})

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


def __dir__() -> list[str]:
    return sorted(__all__)
