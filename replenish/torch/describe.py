"""Describes what a DataLoader draws: reads its samples, batches and kind of sampler from public attributes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from replenish.torch.samplers import OrderBatchSampler
from replenish.torch.step_sampler import StepSampler

Kind = Literal[
    "sequential", "shuffling", "replacement", "subset", "weighted", "distributed", "order", "stream", "other"
]

# Classes with an `__iter__` of their own that draws as torch's class does. They are looked up only in modules that are
# imported. If one is renamed, its samplers count as "other", which all callers leave alone.
_SAME_DRAWS: dict[type, tuple[tuple[str, str], ...]] = {
    BatchSampler: (("torchdata.stateful_dataloader.sampler", "BatchSampler"),),
    DistributedSampler: (("torchdata.stateful_dataloader.sampler", "StatefulDistributedSampler"),),
    RandomSampler: (
        ("torchdata.stateful_dataloader.sampler", "RandomSampler"),
        ("accelerate.data_loader", "SeedableRandomSampler"),
    ),
}


@dataclass(frozen=True)
class LoaderDescription:
    """What a DataLoader draws. Sizes are those of one process.

    Attributes:
        kind: What its sampler does: `sequential`, `shuffling` (all samples once), `replacement` (independent draws),
            `subset` (a shuffled choice of indices), `weighted`, `distributed` (a share for each process; see
            `shuffles`), `order` (one of `replenish.torch`), `stream` (an IterableDataset) or `other`.
        num_samples: The length of the dataset; None if it has no length.
        batch_size: The samples in a batch; None without batches, or if the batch sampler does not have this attribute.
        drop_last: Whether a short last batch is dropped.
        shuffles: Whether each pass is a new random permutation of the samples it draws.
        sampler: The innermost sampler, which chooses the samples.
        batch_sampler: The batch sampler that puts them into batches; None without one, or if it is not torch's.
        wrapper: The object around the batch sampler that the loader draws from, or None.
        indices: The indices that a `subset` chooses from.
        num_replicas: The number of processes that divide the samples.
        rank: The number of this process.
        splits_batches: Whether these processes divide each batch, instead of taking batches in turn.
    """

    kind: Kind
    num_samples: int | None
    batch_size: int | None
    drop_last: bool
    shuffles: bool
    sampler: Any
    batch_sampler: Any = None
    wrapper: Any = None
    indices: Sequence[int] | None = None
    num_replicas: int = 1
    rank: int = 0
    splits_batches: bool = False

    @property
    def sampler_name(self) -> str:
        """The class of the sampler that chooses the samples, for messages."""
        return type(self.sampler).__name__


def describe_loader(loader: DataLoader[Any]) -> LoaderDescription:
    """Describe what a DataLoader draws.

    It looks through wrappers around a batch sampler, such as Accelerate's shards and timm's endless repetition.

    Example:
        >>> loader = DataLoader(range(10), batch_size=4, shuffle=True)
        >>> found = describe_loader(loader)
        >>> found.kind, found.num_samples, found.batch_size, found.drop_last
        ('shuffling', 10, 4, False)
    """
    length = _length(loader.dataset)
    outer: Any = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    if isinstance(loader.dataset, IterableDataset):
        return LoaderDescription("stream", length, loader.batch_size, bool(loader.drop_last), False, outer)
    return describe_sampler(outer, length)


def describe_sampler(outer: Any, num_samples: int | None = None) -> LoaderDescription:
    """Describe a sampler or batch sampler, as `describe_loader` describes a loader that draws from it.

    Args:
        outer: The sampler, the batch sampler or a wrapper around it.
        num_samples: The length of the dataset.
    """
    shard, batches = _find_batch_sampler(outer)
    sampler: Any = outer if batches is None else getattr(batches, "sampler", None)
    kind, shuffles = _kind(sampler)
    if kind in ("distributed", "order"):
        replicas, rank = sampler.num_replicas, sampler.rank
    else:
        replicas, rank = getattr(shard, "num_processes", 1), getattr(shard, "process_index", 0)
    cut_by = outer if batches is None else batches
    if isinstance(batches, StepSampler):
        batch_size = batches.order.batch_size // replicas  # the order's counts the samples of all processes
    else:
        batch_size = getattr(cut_by, "batch_size", None)
    return LoaderDescription(
        kind,
        num_samples,
        batch_size,
        bool(getattr(cut_by, "drop_last", False)),
        shuffles,
        sampler,
        batches,
        None if batches is None or outer is batches else outer,
        sampler.indices if kind == "subset" else None,
        replicas,
        rank,
        bool(getattr(shard, "split_batches", False)),
    )


def _find_batch_sampler(outer: Any) -> tuple[Any, Any]:
    """Return the wrapper that divides batches among processes and the plain batch sampler inside, or None for each."""
    shard: Any = None
    known: list[Any] = []
    node = outer
    while node is not None and not any(node is each for each in known):
        if isinstance(node, StepSampler):
            return shard, node if isinstance(node, OrderBatchSampler) else None
        if _draws_as(node, BatchSampler):
            return shard, node
        if hasattr(node, "num_processes"):  # Accelerate's shards
            shard = node
        known.append(node)
        node = getattr(node, "batch_sampler", None) or getattr(node, "sampler", None)
    return None, None


def _kind(sampler: Any) -> tuple[Kind, bool]:
    """Return the kind of a sampler, and whether each of its passes is a new permutation."""
    if isinstance(sampler, StepSampler):
        return "order", False
    if _draws_as(sampler, DistributedSampler):
        return "distributed", bool(sampler.shuffle)
    if _draws_as(sampler, SubsetRandomSampler):
        return "subset", True
    if _draws_as(sampler, WeightedRandomSampler):
        return "weighted", False
    if _draws_as(sampler, SequentialSampler):
        return "sequential", False
    if _draws_as(sampler, RandomSampler):
        return ("replacement", False) if sampler.replacement else ("shuffling", True)
    return "other", False


def _draws_as(sampler: Any, kind: type[Any]) -> bool:
    """Whether a sampler draws as torch's class `kind` does. A subclass that overrides `__iter__` may draw anything."""
    if isinstance(sampler, kind) and _iter_of(type(sampler)) is _iter_of(kind):
        return True
    known = (getattr(sys.modules.get(module), name, None) for module, name in _SAME_DRAWS.get(kind, ()))
    return any(type(sampler) is each for each in known)


def _iter_of(kind: Any) -> Any:
    return inspect.unwrap(kind.__iter__)  # `LoaderHook` may have wrapped it


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None
