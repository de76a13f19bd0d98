"""fastai's own DataLoader, which is not torch's: the order replaces its `shuffle_fn`, the permutation of one pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from torch.utils.data import BatchSampler, RandomSampler

from replenish.torch.describe import LoaderDescription, describe_sampler


def describe_fastai(loader: Any, num_samples: int) -> LoaderDescription:
    """Describe a pass over a fastai loader as that of torch's loader with equal sizes."""
    return describe_sampler(BatchSampler(RandomSampler(range(num_samples)), loader.bs or 1, bool(loader.drop_last)))


def why_not(loader: Any, world_size: int) -> str | None:
    """Return the reason why an order cannot replace the shuffling of a fastai loader; None if it can."""
    plain = sys.modules["fastai.data.load"].DataLoader
    if not loader.shuffle:
        return "it does not shuffle"
    if world_size > 1:
        return "fastai divides its epochs among processes, not its batches"
    if loader.bs is None or not loader.n:
        return "it makes no batches of a dataset with a length"
    names = ("get_idxs", "sample", "shuffle_fn")
    if any(getattr(type(loader), name) is not getattr(plain, name) or name in vars(loader) for name in names):
        return f"a {type(loader).__name__} chooses its samples in its own way"
    return None


def replace_shuffle_fn(loader: Any, draw: Callable[[Any, list[Any]], Iterable[Any] | None]) -> None:
    """Let a fastai loader's passes be `draw(loader, indices)`, or fastai's own where that is None."""

    def shuffle_fn(loader: Any, indices: list[Any]) -> list[Any]:
        drawn = draw(loader, indices)
        return type(loader).shuffle_fn(loader, indices) if drawn is None else list(drawn)

    # A method, not a function: `loader.new()`, which makes the loaders of predictions, would copy a function.
    loader.shuffle_fn = MethodType(shuffle_fn, loader)
