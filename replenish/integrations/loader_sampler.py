"""The sampler of `replenish.torch` that a DataLoader draws from."""

from __future__ import annotations

from typing import Any

from replenish.torch.index_sampler import SRSSampler
from replenish.torch.step_sampler import StepSampler
from replenish.torch.stream import PooledIterableDataset


def sampler_of(loader: Any) -> StepSampler[Any] | PooledIterableDataset[Any]:
    """Return the sampler or stream of `replenish.torch` that a loader draws from, if its batches count as steps.

    Raises:
        TypeError: The loader has none.
        ValueError: A batch is not a step, or batches come in another order than they were drawn in.
    """
    found = [getattr(loader, name, None) for name in ("batch_sampler", "sampler")]
    stream = getattr(loader, "dataset", None)
    candidates = [*found, stream] if loader.batch_size is None else found
    sampler = next((each for each in candidates if isinstance(each, StepSampler | PooledIterableDataset)), None)
    if sampler is None:
        raise TypeError(
            f"loader should have a sampler of replenish.torch, but its batch sampler is a {type(found[0]).__name__}"
        )
    if isinstance(sampler, SRSSampler) and loader.batch_size != sampler.share_size:
        raise ValueError(
            f"batch_size should be {sampler.share_size}, the sampler's share of a step, so that a batch is one step, "
            f"but got {loader.batch_size}"
        )
    if not getattr(loader, "in_order", True):  # an argument of DataLoader since torch 2.6
        raise ValueError(
            "in_order should be True, since the batches trained are counted in the order in which they are drawn, but "
            "got False"
        )
    return sampler
