"""`reorder`: a DataLoader that someone else made, with another order and everything else as it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from replenish.orders.protocol import Order, check_order
from replenish.orders.registry import ORDERS, build_order
from replenish.torch.batch_samplers import OrderBatchSampler, SRSBatchSampler
from replenish.torch.fastai_loader import check_gives_every_sample, is_fastai_loader, with_batches
from replenish.torch.replicas import current_replicas
from replenish.torch.step_sampler import StepSampler

Loader = TypeVar("Loader")


def reorder(loader: Loader, order: str | Order = "srs", seed: int = 0) -> Loader:
    """Return a loader like `loader` that takes its batches in another order.

    Its class and all its attributes stay as they are: workers, `collate_fn`, `pin_memory`, prefetching, the generator,
    `worker_init_fn`, what a subclass has added. The batch sampler is another, and stands as `sampler` too, so that
    `loader.sampler.set_epoch(epoch)` goes on to work; `loader.batch_sampler.state_dict()` is the position.

    Args:
        loader: A DataLoader over a dataset with a length, that shuffles all of it or none, on one process or divided
            by a DistributedSampler; an object with such a DataLoader in its attribute `loader`; or a DataLoader of
            fastai, on one process.
        order: A name of `replenish.orders.registry.ORDERS`, or an `Order` of as many samples as the dataset.
        seed: Chooses the draws of an order given by its name; the same on all processes.

    Example:
        >>> loader = reorder(DataLoader(range(100), batch_size=10, shuffle=True), seed=1)
        >>> len(loader), next(iter(loader)).tolist() == next(iter(SRSBatchSampler(range(100), 10, seed=1)))
        (10, True)
    """
    if is_fastai_loader(loader):
        check_gives_every_sample(loader)
        theirs: Any = loader
        return with_batches(theirs, _batch_sampler(theirs.n, theirs.bs, theirs.drop_last, order, seed, 1, 0))
    if not isinstance(loader, DataLoader):
        if isinstance(getattr(loader, "loader", None), DataLoader):  # timm's PrefetchLoader, say
            around: Any = copy.copy(loader)
            around.loader = reorder(around.loader, order, seed)
            return around
        raise TypeError(f"loader should be a torch DataLoader, but got a {type(loader).__name__}")
    wrapper, batches = _batches_of(loader)
    num_samples = len(loader.dataset)  # type: ignore[arg-type]
    num_replicas, rank = _division(batches.sampler, num_samples)
    # A loader's batch is that of one process; ours are over all.
    own = isinstance(batches, StepSampler)
    batch_size = batches.order.batch_size if own else batches.batch_size * num_replicas
    new: Any = _batch_sampler(num_samples, batch_size, bool(batches.drop_last), order, seed, num_replicas, rank)
    wrapped = new
    if wrapper is not None:
        wrapped = copy.copy(wrapper)
        wrapped.sampler = new
    clone = copy.copy(loader)
    # torch forbids to assign them, lest a loader that has begun should not notice: the clone has not.
    vars(clone).update(batch_sampler=wrapped, sampler=new, _iterator=None)
    if vars(clone).get("iterator") is not None:  # loaders that repeat for ever keep the iterator that they began
        vars(clone)["iterator"] = _begun_when_asked(clone)
    return clone


def _begun_when_asked(loader: DataLoader[Any]) -> Iterator[Any]:
    """Yield a loader's batches; workers that are started before would read from where `set_epoch` has not been yet."""
    yield from DataLoader.__iter__(loader)


def _batches_of(loader: DataLoader[Any]) -> tuple[Any, Any]:
    """Return what is wrapped around the plain batch sampler of a loader, or None, and that batch sampler."""
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError(
            f"loader should be over a dataset with a length, but got one over a {type(loader.dataset).__name__}; for "
            f"data that stream, see replenish.stream"
        )
    batches: Any = loader.batch_sampler
    wrapper: Any = None
    if not isinstance(batches, BatchSampler) and isinstance(getattr(batches, "sampler", None), BatchSampler):
        wrapper, batches = batches, batches.sampler  # timm's and ultralytics' samplers that repeat for ever
    if isinstance(batches, StepSampler) or type(batches) is BatchSampler:
        return wrapper, batches
    found = "none, for it has no batch_size" if batches is None else f"a {type(batches).__name__}"
    raise TypeError(f"loader should have a batch sampler of torch, which batch_size makes, but got {found}")


def _division(sampler: Any, num_samples: int) -> tuple[int, int]:
    """Return the number of processes and the number of this one, of a sampler that gives all samples."""
    if isinstance(sampler, StepSampler) or type(sampler) is DistributedSampler:
        return sampler.num_replicas, sampler.rank
    whole = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples == num_samples
    )
    if not whole:
        raise TypeError(
            f"loader should give every sample of its dataset once an epoch, but its sampler is a "
            f"{type(sampler).__name__}; for a choice of samples or weights, build the order with a sequence of them "
            f"and give it to replenish.torch.OrderBatchSampler"
        )
    return current_replicas(None, None)


def _batch_sampler(
    num_samples: int, batch_size: int, drop_last: bool, order: str | Order, seed: int, num_replicas: int, rank: int
) -> OrderBatchSampler:
    ranks = {"num_replicas": num_replicas, "rank": rank}
    if order == "srs":
        return SRSBatchSampler(range(num_samples), batch_size, seed=seed, drop_last=drop_last, **ranks)
    if isinstance(order, str):
        can_drop = order in ORDERS and "drop_last" in ORDERS[order].options
        options = {"drop_last": True} if can_drop and drop_last else {}
        return OrderBatchSampler(build_order(order, num_samples, batch_size, seed=seed, **options), **ranks)
    check_order(order)
    if (order.num_samples, order.batch_size) != (num_samples, batch_size):
        raise ValueError(
            f"order should have the loader's {num_samples} samples and batches of {batch_size} over all processes, but "
            f"got {order.num_samples} and {order.batch_size}"
        )
    return OrderBatchSampler(order, **ranks)
