"""The arguments of the samplers, checked."""

from __future__ import annotations

from collections.abc import Sized

import numpy.typing as npt
from torch.utils.data import Sampler

from replenish import checks
from replenish.orders.sequenced_replacement import SequencedReplacement

# Lightning and Fabric rebuild a batch sampler with their own sampler as the first argument.
REBUILT = (
    "If Lightning or Fabric rebuilt the batch sampler, pass use_distributed_sampler=False to the Trainer or to "
    "setup_dataloaders(): the sampler itself divides its batches among processes"
)


def length_of(data_source: Sized) -> int:
    """Return the number of samples of `data_source`, or raise if it is not a dataset with a length."""
    if isinstance(data_source, Sampler):
        raise TypeError(
            f"data_source should be the dataset itself, since the order chooses the indices, but got a "
            f"{type(data_source).__name__}. {REBUILT}"
        )
    try:
        num_samples = len(data_source)
    except TypeError:
        if isinstance(data_source, int):
            found = f"{data_source}; pass range({data_source}) for that many samples"
        else:
            found = f"a {type(data_source).__name__} without one; for data that stream, see replenish.stream"
        raise TypeError(f"data_source should be a dataset with a length, but got {found}") from None
    if num_samples == 0:
        raise ValueError("data_source should have at least one sample, but its length is 0")
    return num_samples


def srs_order(
    data_source: Sized, batch_size: int, seed: int, pool_size: int | None, sequence: str | npt.ArrayLike
) -> SequencedReplacement:
    """Return the order of an SRS sampler over `data_source`."""
    return SequencedReplacement(length_of(data_source), batch_size, seed=seed, pool_size=pool_size, sequence=sequence)


def epoch_of_srs(order: SequencedReplacement, drop_last: bool) -> int:
    """Return the steps of an effective epoch, as `len(DataLoader)` counts them."""
    if not checks.boolean("drop_last", drop_last):
        return order.steps_per_epoch
    if order.batch_size > order.sequence_length:
        raise ValueError(
            f"batch_size should be at most the number of samples with drop_last=True, since an epoch would have no "
            f"step, but got batch_size={order.batch_size} and {order.sequence_length} samples"
        )
    return order.sequence_length // order.batch_size
