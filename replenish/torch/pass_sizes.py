"""The sizes of one pass over a shuffling loader, which an order that stands in for the shuffling keeps."""

from __future__ import annotations

from dataclasses import dataclass

from replenish.torch.describe import LoaderDescription


@dataclass(frozen=True)
class PassSizes:
    """The sizes of one pass. Batches of a step are counted over all processes."""

    num_samples: int  # the samples to choose from
    batch_size: int  # the samples of a step
    steps: int  # the steps of a pass
    last_batch_size: int  # the samples of the last of them
    num_replicas: int  # the processes that divide every batch by the sampler itself
    rank: int  # which of them this is
    list_size: int | None  # the indices that the sampler yields at a time; None: one, and not in a list


def sizes_of(found: LoaderDescription, parts: int, *, everything: bool) -> PassSizes | str:
    """Return the sizes of a pass, or the reason why an order cannot stand in for the sampler, in a few words.

    Args:
        found: The sampler that is to be replaced.
        parts: How many processes take its batches in turn, each step one of each.
        everything: Whether samplers that do not shuffle are replaced as well.
    """
    if found.kind == "stream":
        return "an IterableDataset gives samples in its own order"
    if found.kind == "replacement":
        return "its RandomSampler draws with replacement, which is not shuffling"
    if not found.shuffles:
        if found.kind not in ("sequential", "distributed"):
            return f"it has a sampler of its own, {found.sampler_name}"
        if not everything:
            return "it does not shuffle"
    num_samples, each = _population(found), len(found.sampler)
    if each > num_samples:
        return f"its RandomSampler goes through {num_samples:,} samples more than once in an epoch"
    list_size = found.batch_size or 1
    items = each // list_size * list_size if found.drop_last else each
    if items == 0:
        return "it drops its only batch, which is short"
    replicas = found.num_replicas if found.kind == "distributed" else 1
    size = min(list_size * parts, items)
    steps = -(-items // size)
    if size * replicas > num_samples:
        return f"its batch of {size * replicas:,} is larger than its {num_samples:,} samples"
    last = (items - (steps - 1) * size) * replicas
    rank = found.rank if replicas > 1 else 0
    return PassSizes(num_samples, size * replicas, steps, last, replicas, rank, found.batch_size and list_size)


def _population(found: LoaderDescription) -> int:
    if found.indices is not None:
        return len(found.indices)
    return len(found.sampler.dataset if found.kind == "distributed" else found.sampler.data_source)
