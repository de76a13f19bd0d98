"""fastai's own DataLoader with another order.

It is no DataLoader of torch, but has torch's iterator draw from an endless count, one number a batch, while its items
come by indices that `get_idxs` gives when a pass begins. So the indices are those of the sampler's next pass, and the
sampler takes the place of the count: who draws, what is prefetched and what was handed on is then known as for any
DataLoader. Nothing of fastai is imported: its classes are known by their names.
"""

from __future__ import annotations

import copy
import sys
from types import MethodType
from typing import Any

from replenish.torch.batch_samplers import OrderBatchSampler
from replenish.torch.replicas import current_replicas


def is_fastai_loader(loader: object) -> bool:
    """Tell whether an object is a DataLoader of fastai."""
    return _fastai_class(loader) is not None


def check_gives_every_sample(loader: Any) -> None:
    """Refuse a loader of fastai that does not give every sample of a dataset once a pass, in batches."""
    if (replicas := current_replicas(None, None)[0]) > 1:
        raise TypeError(f"loader should be a DataLoader of torch on several processes, but got fastai's on {replicas}")
    plain = _fastai_class(loader)
    own = [name for name in ("get_idxs", "sample", "create_batches") if not _is_inherited(loader, plain, name)]
    if own:
        raise TypeError(
            f"loader should take its indices as fastai's DataLoader does, but a {type(loader).__name__} has a "
            f"{own[0]} of its own; for a choice of samples or weights, give an order with a sequence of them"
        )
    if loader.bs is None or not loader.indexed or loader.n != len(loader.dataset):
        raise TypeError(
            f"loader should give batches of a dataset with a length, all of it, but got a {type(loader).__name__} with "
            f"bs={loader.bs}, n={loader.n} and indexed={loader.indexed}"
        )


def with_batches(loader: Any, batches: OrderBatchSampler) -> Any:
    """Return a loader of fastai like `loader` that takes its batches from a sampler."""
    if len(batches) != len(loader):
        raise ValueError(
            f"order should have the loader's {len(loader)} steps an epoch, which fastai's schedules count by, but "
            f"{batches.order!r} has {len(batches)}"
        )
    clone = copy.copy(loader)
    clone.fake_l = copy.copy(loader.fake_l)
    clone.fake_l.d = clone.fake_l.default = clone
    clone.fake_l.dataset = clone.fake_l
    clone.fake_l._index_sampler = batches
    clone.batch_sampler = clone.sampler = batches
    # A method, and no function: `loader.new()`, which makes the loaders of predictions, would take a function along.
    clone.get_idxs = MethodType(_indices_of_the_next_pass, clone)
    return clone


def _fastai_class(loader: object) -> Any:
    return next(
        (cls for cls in type(loader).__mro__ if cls.__name__ == "DataLoader" and cls.__module__.startswith("fastai.")),
        None,
    )


def _is_inherited(loader: Any, plain: Any, name: str) -> bool:
    set_on_it = vars(loader).get(name)
    ours = isinstance(set_on_it, MethodType) and set_on_it.__func__ is _indices_of_the_next_pass
    return getattr(type(loader), name) is getattr(plain, name) and (set_on_it is None or ours)


def _indices_of_the_next_pass(loader: Any) -> list[int]:
    asks: Any = sys._getframe(1).f_locals.get("self")
    if asks is not loader:
        raise TypeError(
            "loader should be the one that is passed over, but another asks it for its indices, as fastai's "
            "DistributedDL does; give a DataLoader of torch with SRSBatchSampler to a loop of several processes"
        )
    sampler: OrderBatchSampler = loader.batch_sampler
    batches = list(sampler)
    if any(len(batch) != loader.bs for batch in batches[:-1]):
        raise ValueError(
            f"order should have batches of {loader.bs}, into which fastai cuts its indices, but {sampler.order!r} has "
            f"others"
        )
    return [index for batch in batches for index in batch]
