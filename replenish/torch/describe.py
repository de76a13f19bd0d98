"""What a DataLoader draws, read from its public attributes: how many samples, which batches, which kind of sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from replenish.orders.protocol import Order

Kind = Literal[
    "sequential", "shuffling", "replacement", "subset", "weighted", "distributed", "order", "stream", "other"
]

# Subclasses of torch's samplers in these packages draw as torch's do. Any other subclass may draw anything.
_PACKAGES = {"torch", "torchdata", "accelerate"}


@dataclass(frozen=True)
class LoaderDescription:
    """What a DataLoader draws. Sizes are those of one process.

    Attributes:
        kind: What its sampler does: `sequential`, `shuffling` (all samples once), `replacement` (independent draws),
            `subset` (a shuffled choice of indices), `weighted`, `distributed` (a share for each process; see
            `shuffles`), `order` (a sampler over an `Order`), `stream` (an IterableDataset) or `other`.
        num_samples: The length of the dataset; None if it has none.
        batch_size: The samples in a batch; None if the loader takes samples one by one or its batch sampler has none.
        drop_last: Whether a short last batch is left out.
        shuffles: Whether each pass is a new random permutation of the samples it draws.
        sampler: The innermost sampler, which chooses the samples.
        batch_sampler: The batch sampler that cuts them into batches; None if there is none or it is not torch's.
        indices: The indices that a `subset` chooses from.
        num_replicas: How many processes divide the samples among them.
        rank: Which of them this is.
        splits_batches: Whether those processes divide each batch, rather than take batches in turn.
    """

    kind: Kind
    num_samples: int | None
    batch_size: int | None
    drop_last: bool
    shuffles: bool
    sampler: Any
    batch_sampler: Any = None
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

    Wrappers around a batch sampler, such as Accelerate's shards and timm's endless repetition, are looked through.

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
    shard, batches = _find_batch_sampler(outer)
    sampler: Any
    if batches is None:
        sampler, batch_size, drop_last = outer, getattr(outer, "batch_size", None), getattr(outer, "drop_last", False)
    else:
        sampler, batch_size, drop_last = getattr(batches, "sampler", None), batches.batch_size, batches.drop_last
    kind, shuffles = _kind(sampler)
    replicas, rank = getattr(shard, "num_processes", 1), getattr(shard, "process_index", 0)
    if kind in ("distributed", "order"):
        replicas, rank = getattr(sampler, "num_replicas", 1), getattr(sampler, "rank", 0)
    return LoaderDescription(
        kind,
        length,
        batch_size,
        bool(drop_last),
        shuffles,
        sampler,
        batches,
        sampler.indices if kind == "subset" else None,
        replicas,
        rank,
        bool(getattr(shard, "split_batches", False)),
    )


def _find_batch_sampler(outer: Any) -> tuple[Any, Any]:
    """Return the wrapper that divides batches among processes, or None, and the plain batch sampler inside, or None."""
    shard: Any = None
    known: list[Any] = []
    node = outer
    while node is not None and not any(node is each for each in known):
        if _has_an_order(node):
            return shard, node if hasattr(node, "batch_size") and hasattr(node, "sampler") else None
        if isinstance(node, BatchSampler) and _package(node) in ("torch", "torchdata"):
            return shard, node
        if hasattr(node, "num_processes"):  # Accelerate's shards
            shard = node
        known.append(node)
        node = getattr(node, "batch_sampler", None) or getattr(node, "sampler", None)
    return None, None


def _kind(sampler: Any) -> tuple[Kind, bool]:
    """Return the kind of a sampler, and whether each of its passes is a new permutation."""
    if _has_an_order(sampler):
        return "order", False
    if _package(sampler) not in _PACKAGES:
        return "other", False
    if isinstance(sampler, DistributedSampler):
        return "distributed", bool(sampler.shuffle)
    if isinstance(sampler, SubsetRandomSampler):
        return "subset", True
    if isinstance(sampler, WeightedRandomSampler):
        return "weighted", False
    if isinstance(sampler, SequentialSampler):
        return "sequential", False
    # torchdata's RandomSampler is not a subclass of torch's, but has the same attributes.
    if all(hasattr(sampler, name) for name in ("data_source", "replacement", "num_samples")):
        return ("replacement", False) if sampler.replacement else ("shuffling", True)
    return "other", False


def _has_an_order(sampler: Any) -> bool:
    return isinstance(getattr(sampler, "order", None), Order)


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None
