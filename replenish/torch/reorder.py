"""`reorder`: a copy of a DataLoader with another order and everything else unchanged."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from torch.utils.data import DataLoader

from replenish.orders.building import build_order
from replenish.orders.protocol import Order, check_order
from replenish.orders.registry import ORDERS
from replenish.torch.describe import LoaderDescription, describe_loader
from replenish.torch.samplers import OrderBatchSampler, SRSBatchSampler
from replenish.torch.step_sampler import StepSampler, current_replicas

Loader = TypeVar("Loader")

# torch keeps a loader's workers in this attribute, which its class declares. A copy must not share them, and torch has
# no public way to copy a loader.
_WORKERS = "_iterator"


def reorder(loader: Loader, order: str | Order = "srs", seed: int = 0) -> Loader:
    """Return a loader like `loader` that takes its batches from a sampler over another order.

    Its class and other attributes stay the same: the number of workers, `collate_fn`, `pin_memory`, the generator,
    `worker_init_fn`, and what a subclass has added. Its `batch_sampler` and `sampler` are the same sampler of
    `replenish.torch`, so `loader.sampler` has `set_epoch(epoch)`, `seek(step)` and `state_dict(step)`. The original
    loader is not changed.

    Args:
        loader: A DataLoader that gives every sample of a dataset once per epoch, on one process or divided by a
            DistributedSampler; or an object with such a DataLoader in its attribute `loader`.
        order: A name of `replenish.orders.registry.ORDERS`, or an `Order` of as many samples as the dataset.
        seed: Chooses the draws of an order given by its name; the same on all processes.

    Example:
        >>> loader = reorder(DataLoader(range(100), batch_size=10, shuffle=True), seed=1)
        >>> len(loader), next(iter(loader)).tolist() == next(iter(SRSBatchSampler(range(100), 10, seed=1)))
        (10, True)
    """
    if not isinstance(loader, DataLoader):
        if isinstance(getattr(loader, "loader", None), DataLoader):  # timm's PrefetchLoader
            around: Any = copy.copy(loader)
            around.loader = reorder(around.loader, order, seed)
            return around
        raise TypeError(
            f"loader should be a torch DataLoader, but got a {type(loader).__module__}.{type(loader).__name__}; give "
            f"replenish.torch.SRSBatchSampler to a loader of torch"
        )
    if _WORKERS not in vars(loader):
        raise TypeError(
            f"loader should be of a version of torch whose DataLoader has {_WORKERS}, but got a "
            f"{type(loader).__name__} without it; give replenish.torch.SRSBatchSampler to a new loader"
        )
    found = describe_loader(loader)
    _check(found, loader)
    new = _batch_sampler(found, order, seed)
    clone = copy.copy(loader)
    # DataLoader forbids assigning samplers, since an iterator under way would keep the old one. The clone has none.
    vars(clone).update({"batch_sampler": new, "sampler": new, _WORKERS: None})
    return clone


def _check(found: LoaderDescription, loader: DataLoader[Any]) -> None:
    """Raise if a sampler over an order cannot replace the loader's samplers."""
    if found.kind == "stream":
        raise TypeError(
            "loader should be over a dataset with a length, but got one over an IterableDataset; for data that stream, "
            "see replenish.stream"
        )
    if found.wrapper is not None:
        raise TypeError(
            f"loader should draw from its batch sampler, but a {type(found.wrapper).__name__} is around it, which may "
            f"read ahead into the next epoch or divide the batches; give the loader as it was before, without timm's "
            f"use_multi_epochs_loader or Accelerate's prepare"
        )
    if found.batch_sampler is None:
        theirs = loader.batch_sampler
        what = "none, since it has no batch_size" if theirs is None else f"a {type(theirs).__name__}"
        raise TypeError(f"loader should have a batch sampler of torch, which batch_size makes, but got {what}")
    every = found.kind in ("sequential", "shuffling", "distributed", "order")
    if found.kind == "shuffling" and len(found.sampler) != found.num_samples:
        every = False
    if not every:
        raise TypeError(
            f"loader should give every sample of its dataset once per epoch, but its sampler is a "
            f"{found.sampler_name}; for a choice of samples or weights, build the order with a sequence of them "
            f"and give it to replenish.torch.OrderBatchSampler"
        )


def _batch_sampler(found: LoaderDescription, order: str | Order, seed: int) -> OrderBatchSampler:
    num_samples: Any = found.num_samples
    replicas: dict[str, Any] = {"num_replicas": None, "rank": None}  # None means torch.distributed's value
    if found.kind in ("distributed", "order"):
        replicas = {"num_replicas": found.num_replicas, "rank": found.rank}
    if isinstance(found.sampler, StepSampler):
        batch_size = found.sampler.order.batch_size
    else:
        # A loader's batch size counts the samples of one process, and an order's the samples of all.
        batch_size = (found.batch_size or 1) * current_replicas(replicas["num_replicas"], replicas["rank"])[0]
    if order == "srs":
        return SRSBatchSampler(range(num_samples), batch_size, seed=seed, drop_last=found.drop_last, **replicas)
    if isinstance(order, str):
        can_drop = order in ORDERS and "drop_last" in ORDERS[order].options
        options = {"drop_last": True} if can_drop and found.drop_last else {}
        return OrderBatchSampler(build_order(order, num_samples, batch_size, seed=seed, **options), **replicas)
    check_order(order)
    if (order.num_samples, order.batch_size) != (num_samples, batch_size):
        raise ValueError(
            f"order should have the loader's {num_samples} samples and batches of {batch_size} over all processes, but "
            f"got {order.num_samples} and {order.batch_size}"
        )
    return OrderBatchSampler(order, **replicas)
