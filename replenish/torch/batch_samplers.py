"""Batch samplers over an `Order`: what a `DataLoader` takes as `batch_sampler`."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import numpy.typing as npt
from torch.utils.data import Sampler

from replenish.orders.protocol import Order, check_order
from replenish.torch.arguments import REBUILT, epoch_of_srs, srs_order
from replenish.torch.position import PositionedSampler


class OrderBatchSampler(PositionedSampler[list[int]]):
    """Any `Order` as a batch sampler: lists of Python ints, one effective epoch a pass, without end.

    Give it to `DataLoader(batch_sampler=...)`. Every process draws the same global batch and takes its
    contiguous share, so the stream of global batches is the same on any number of processes. Passes follow each
    other from epoch to epoch; one that is left early is not counted, and the next begins where it began.
    `set_epoch`, `seek` and `load_state_dict` put the next pass anywhere. Passes may run in different threads.

    Args:
        order: Which samples make up the global batch of every step.
        num_replicas: The number of processes; default: torch.distributed's if it is initialised, else 1.
        rank: The number of this process; default: torch.distributed's if it is initialised, else 0.

    Example:
        >>> from replenish import RandomReshuffling
        >>> sampler = OrderBatchSampler(RandomReshuffling(num_samples=6, batch_size=2))
        >>> len(sampler), sorted(index for batch in sampler for index in batch)
        (3, [0, 1, 2, 3, 4, 5])
    """

    def __init__(self, order: Order, *, num_replicas: int | None = None, rank: int | None = None) -> None:
        try:
            check_order(order)
        except TypeError as error:
            if isinstance(order, Sampler):
                raise TypeError(f"{error}. {REBUILT}") from None
            raise
        drop_last = bool(getattr(order, "drop_last", False))
        super().__init__(order, order.steps_per_epoch, num_replicas, rank, drop_last=drop_last)

    def __len__(self) -> int:
        return self.steps_per_epoch

    @property
    def sampler(self) -> OrderBatchSampler:
        """Itself: frameworks call `set_epoch` on a batch sampler's `sampler`, as torch's own has one."""
        return self

    def _items(self, start: int, end: int) -> Iterator[list[int]]:
        return self._lists(start, end)


class SRSBatchSampler(OrderBatchSampler):
    """Sequenced-replacement sampling as a drop-in batch sampler (the paper's section 2).

    `DataLoader(dataset, batch_size=64, shuffle=True)` becomes
    `DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 64))`. See `SequencedReplacement` for the method and
    `OrderBatchSampler` for passes, positions and processes.

    Args:
        data_source: The dataset; its length is the number of samples.
        batch_size: The global batch, the paper's B; with `num_replicas=n` a process gets B/n of each batch.
        seed: Chooses the draws and the shuffled sequence; the same on all processes.
        pool_size: The number of slots; None means the sequence's length: the number of samples, the paper's, unless
            `sequence` is an array.
        sequence: `"shuffled"`, `"identity"` or an array of indices; one round of it is an effective epoch.
        num_replicas: The number of processes; default: torch.distributed's if it is initialised, else 1.
        rank: The number of this process; default: torch.distributed's if it is initialised, else 0.
        drop_last: Whether an effective epoch is N/B steps rounded down instead of up, as
            `len(DataLoader)` would be. SRS has no short batch, so nothing is dropped.

    Example:
        >>> sampler = SRSBatchSampler(range(100), 10, seed=1)
        >>> len(sampler), [len(batch) for batch in sampler][:3]
        (10, [10, 10, 10])
    """

    def __init__(
        self,
        data_source: Sized,
        batch_size: int,
        *,
        seed: int = 0,
        pool_size: int | None = None,
        sequence: str | npt.ArrayLike = "shuffled",
        num_replicas: int | None = None,
        rank: int | None = None,
        drop_last: bool = False,
    ) -> None:
        order = srs_order(data_source, batch_size, seed, pool_size, sequence)
        super().__init__(order, num_replicas=num_replicas, rank=rank)
        self.steps_per_epoch = epoch_of_srs(order, drop_last)
        self.drop_last = drop_last
