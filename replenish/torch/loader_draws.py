"""What a DataLoader draws, read off its samplers: how many samples, in which batches, on how many processes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from replenish.torch.batch_samplers import OrderBatchSampler

#: The frameworks' own kinds of torch's RandomSampler.
_RANDOM_SAMPLERS = (("accelerate", "SeedableRandomSampler"), ("torchdata", "RandomSampler"))

IndexSampler = Any  # what a DataLoader iterates: a sampler of indices or of lists of them


@dataclass(frozen=True)
class LoaderShape:
    """The sizes of what a shuffling loader draws; sizes of batches are global, over all processes."""

    num_samples: int  # how many samples there are
    batch_size: int  # how many a step draws
    steps: int  # how many steps an epoch has
    last_batch_size: int  # how many samples the last of them has
    num_replicas: int = 1  # how many processes share a batch
    rank: int = 0  # which of them this is


@dataclass(frozen=True)
class ShuffledDraws:
    """A loader that shuffles, and how an order takes its place."""

    shape: LoaderShape  # the sizes
    sampler: Sampler[Any]  # the sampler that shuffles; its attribute `epoch`, if it has one, is what `set_epoch` set
    by_index: bool  # whether the loader takes indices one by one instead of lists
    # Puts what the frameworks wrap around a batch sampler around an order's.
    wrap: Callable[[OrderBatchSampler], IndexSampler]


def draws_of(index_sampler: IndexSampler, dataset: object) -> ShuffledDraws | str:
    """Return how a loader shuffles, or in a few words why an order cannot take the place of what it iterates."""
    if isinstance(dataset, IterableDataset):
        return "an IterableDataset gives samples in its own order"
    if _is_of(index_sampler, "accelerate", "SkipBatchSampler"):
        return _wrapped(index_sampler, draws_of(index_sampler.batch_sampler, dataset))
    if _is_of(index_sampler, "accelerate", "BatchSamplerShard"):
        return _shard(index_sampler, dataset)
    if type(index_sampler) is BatchSampler or _is_of(index_sampler, "torchdata", "BatchSampler"):
        return _shuffled(index_sampler.sampler, index_sampler.batch_size, index_sampler.drop_last, by_index=False)
    return _shuffled(index_sampler, 1, False, by_index=True)


def _shuffled(sampler: Any, batch_size: int, drop_last: bool, *, by_index: bool) -> ShuffledDraws | str:
    """Return what batches over a sampler are, if it is torch's own and shuffles."""
    replicas, rank = 1, 0
    if type(sampler) is DistributedSampler or _is_of(sampler, "torchdata", "StatefulDistributedSampler"):
        if not sampler.shuffle:
            return "it does not shuffle"
        replicas, rank = sampler.num_replicas, sampler.rank
        num_samples = len(sampler.dataset)
    elif type(sampler) is RandomSampler or any(_is_of(sampler, *names) for names in _RANDOM_SAMPLERS):
        if sampler.replacement:
            return "its RandomSampler draws with replacement, and is no shuffling"
        num_samples = len(sampler.data_source)
    elif type(sampler) is SequentialSampler:
        return "it does not shuffle"
    else:
        return f"it has a sampler of its own, {type(sampler).__name__}"
    each = len(sampler)  # what this process gets in an epoch
    if each > num_samples:
        return f"its RandomSampler goes through {num_samples:,} samples more than once in an epoch"
    steps = each // batch_size if drop_last else -(-each // batch_size)
    if steps == 0:
        return "it drops its only batch, which is short"
    size = min(batch_size, each)
    last = size if drop_last else each - (steps - 1) * size
    shape = LoaderShape(num_samples, replicas * size, steps, replicas * last, replicas, rank)
    return _checked(ShuffledDraws(shape, sampler, by_index, lambda ordered: ordered))


def _shard(shard: Any, dataset: object) -> ShuffledDraws | str:
    """Return the draws of a batch sampler that Accelerate divides among processes."""
    inner = draws_of(shard.batch_sampler, dataset)
    if isinstance(inner, str):
        return inner
    if not shard.even_batches:
        return _wrapped(shard, inner)  # processes have batches of unequal sizes, which Accelerate cuts from the stream
    # All processes have full batches, filled up with the first samples of the epoch.
    replicas, size = shard.num_processes, inner.shape.batch_size
    if not shard.split_batches:
        size *= replicas
    if len(shard) == 0:
        return "it has no batch for every process"
    shape = LoaderShape(inner.shape.num_samples, size, len(shard), size, replicas, shard.process_index)
    return _checked(ShuffledDraws(shape, inner.sampler, inner.by_index, inner.wrap))


def _wrapped(wrapper: Any, inner: ShuffledDraws | str) -> ShuffledDraws | str:
    """Return the draws of a wrapper that takes its batches from another batch sampler."""
    if isinstance(inner, str):
        return inner

    def wrap(ordered: OrderBatchSampler) -> IndexSampler:
        wrapped = copy.copy(wrapper)
        wrapped.batch_sampler = inner.wrap(ordered)
        return wrapped

    return ShuffledDraws(inner.shape, inner.sampler, inner.by_index, wrap)


def _checked(draws: ShuffledDraws) -> ShuffledDraws | str:
    if draws.shape.batch_size > draws.shape.num_samples:
        return f"its batch of {draws.shape.batch_size:,} is larger than its {draws.shape.num_samples:,} samples"
    return draws


def _is_of(sampler: object, package: str, name: str) -> bool:
    """Tell a framework's class by its name: so the framework need not be there."""
    return type(sampler).__name__ == name and type(sampler).__module__.partition(".")[0] == package
