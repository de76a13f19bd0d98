"""Batch samplers over an `Order`: pass one to `DataLoader(batch_sampler=...)`."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import numpy.typing as npt
import torch.distributed
from torch.utils.data import Sampler

from replenish import checks
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.protocol import Order, check_order
from replenish.torch.arguments import REBUILT, epoch_of_srs, length_of, srs_order
from replenish.torch.step_sampler import StepSampler


class OrderBatchSampler(StepSampler[list[int]]):
    """Any `Order` as a batch sampler: lists of Python ints, one epoch per pass, without end.

    Every process draws the same global batch and takes its contiguous share, so the stream of global batches does not
    depend on the number of processes. A pass that is drawn to its end is followed by the next epoch. After a pass that
    was left early, call `set_epoch` or `seek` before the next one.

    Args:
        order: The samples of every global batch.
        num_replicas: The number of processes; None means torch.distributed's when a pass begins, or 1 without it.
        rank: The number of this process; None means torch.distributed's when a pass begins, or 0 without it.

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
        super().__init__(order, num_replicas=num_replicas, rank=rank)
        self.drop_last = bool(getattr(order, "drop_last", False))

    def __len__(self) -> int:
        return self.steps_per_epoch

    @property
    def sampler(self) -> OrderBatchSampler:
        """The batch sampler itself: frameworks call `set_epoch` on a batch sampler's `sampler`."""
        return self

    @property
    def batch_size(self) -> int:
        """The global batch size.

        Raises:
            ValueError: The run has several processes. A library that reads this attribute would divide the batches
                among the processes a second time.
        """
        running = torch.distributed.is_available() and torch.distributed.is_initialized()
        if self.num_replicas > 1 or (running and torch.distributed.get_world_size() > 1):
            raise ValueError(
                f"batch_size should not be read where several processes run, since the sampler already gives rank "
                f"{self.rank} its share and a library that reads it would divide the batches again; for Lightning and "
                f"Fabric, pass use_distributed_sampler=False; for Accelerate, use "
                f"replenish.integrations.accelerate.prepare; the global batch size is sampler.order.batch_size"
            )
        return self.order.batch_size

    def _items(self, start: int, end: int) -> Iterator[list[int]]:
        return self._lists(start, end)


class SRSBatchSampler(OrderBatchSampler):
    """Sequenced-replacement sampling as a drop-in batch sampler (the paper's section 2).

    `DataLoader(dataset, batch_size=64, shuffle=True)` becomes
    `DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 64))`. See `SequencedReplacement` for the method and
    `OrderBatchSampler` for passes, positions and processes.

    Args:
        data_source: The dataset; its length is the number of samples.
        batch_size: The global batch size, the paper's B; with `num_replicas=n` a process gets B/n of each batch.
        seed: Chooses the draws and the shuffled sequence; the same on all processes.
        pool_size: The number of slots; None means the length of the sequence.
        sequence: `"shuffled"`, `"identity"` or an array of indices; one round of it is an effective epoch.
        num_replicas: The number of processes; None means torch.distributed's when a pass begins, or 1 without it.
        rank: The number of this process; None means torch.distributed's when a pass begins, or 0 without it.
        drop_last: Whether an epoch is N/B steps rounded down instead of up, as `len(DataLoader)` would be. SRS has no
            short batch, so nothing is dropped.

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


class ReshufflingBatchSampler(OrderBatchSampler):
    """Ordinary shuffling with exact resume: every epoch is a new permutation of the samples.

    It is what `DataLoader(shuffle=True)` does, from a stream of random numbers that depends only on the seed, the epoch
    and the sizes. So a run resumes at any step, on any number of processes, without the state of a generator.

    Args:
        data_source: The dataset; its length is the number of samples.
        batch_size: The global batch size; with `num_replicas=n` a process gets B/n of each batch.
        seed: Chooses the permutations; the same on all processes.
        num_replicas: The number of processes; None means torch.distributed's when a pass begins, or 1 without it.
        rank: The number of this process; None means torch.distributed's when a pass begins, or 0 without it.
        drop_last: Whether the short batch at the end of an epoch is dropped.

    Example:
        >>> sampler = ReshufflingBatchSampler(range(10), 4)
        >>> [len(batch) for batch in sampler], sorted(sum(sampler, []))
        ([4, 4, 2], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    def __init__(
        self,
        data_source: Sized,
        batch_size: int,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
        drop_last: bool = False,
    ) -> None:
        drop_last = checks.boolean("drop_last", drop_last)
        order = RandomReshuffling(length_of(data_source), batch_size, seed=seed, drop_last=drop_last)
        super().__init__(order, num_replicas=num_replicas, rank=rank)
