"""`using`: a context in which loaders that shuffle draw from an order instead, in code that nobody edits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from replenish.torch.shuffle_patch import ShufflePatch


@contextmanager
def using(order: str, *, seed: int = 0, everything: bool = False, **options: Any) -> Iterator[ShufflePatch]:
    """Give an order to every loader made inside that shuffles, also by Lightning, Accelerate or Transformers.

    A loader shuffles if it has `shuffle=True`, a `RandomSampler` without replacement, a `SubsetRandomSampler`, a
    `DistributedSampler` that shuffles, or a `BatchSampler` over these; or if it is fastai's, with `shuffle=True`. A
    loader keeps its length and its batch sizes. Every `iter()` of it draws an epoch of its own, as torch's shuffling
    does: also after a pass that was left early, and with several passes at once. A higher `set_epoch` skips epochs.
    There is no resume: for that, use a sampler.

    Other loaders are left alone, and so are loaders made before. Passes that begin with gradients switched off keep
    torch's order, since an evaluation wants every sample once. At the end, loaders get torch's shuffling back.

    Args:
        order: A name of `replenish.orders.registry.ORDERS`.
        seed: The seed of the first loader trained on; further loaders have seeds derived from it.
        everything: Whether loaders that do not shuffle get the order, too.
        **options: Options of the order, such as `pool_size` or `sequence` of SRS.

    Yields:
        The patch, whose `records` and `summaries()` say what happened to each loader.

    Raises:
        RuntimeError: At the end, if no loader could get the order.

    Example:
        >>> from torch.utils.data import DataLoader
        >>> with using("srs", seed=3) as patch:
        ...     batches = list(DataLoader(range(10), batch_size=4, shuffle=True))
        >>> [len(batch) for batch in batches]
        [4, 4, 2]
        >>> patch.records[0].order, patch.records[0].seed, patch.records[0].passes
        ('srs', 3, 1)
    """
    patch = ShufflePatch(order, seed, options, everything=everything)
    with patch.hook:
        yield patch
    if not any(record.order for record in patch.records):
        found = "; ".join(patch.summaries()) or "no DataLoader was made"
        raise RuntimeError(f"using({order!r}) should have a loader that shuffles to give the order to, but {found}")
