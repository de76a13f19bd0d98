"""Samplers over an `Order`: give a batch sampler to `DataLoader(batch_sampler=...)`, or `SRSSampler` to `sampler=`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from itertools import chain
from typing import Any

import numpy.typing as npt
from torch.utils.data import Sampler
from torch.utils.data.distributed import DistributedSampler

from replenish import checks, state
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.protocol import Order, check_order
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.torch.step_sampler import StepSampler, current_replicas

# Lightning and Fabric rebuild a batch sampler with their own sampler as the first argument.
REBUILT = (
    "If Lightning or Fabric rebuilt the batch sampler, pass use_distributed_sampler=False to the Trainer or to "
    "setup_dataloaders(): the sampler itself divides its batches among processes"
)


class OrderBatchSampler(StepSampler[list[int]]):
    """Any `Order` as a batch sampler: lists of Python ints, one epoch per pass, without end.

    Every process draws the same global batch and takes its contiguous share, so the stream of global batches does not
    depend on the number of processes. After a pass that was drawn to its end, the next pass is the next epoch. After a
    pass that was left early, call `set_epoch` or `seek` before the next one.

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
        if self.num_replicas > 1 or current_replicas(None, None)[0] > 1:
            raise ValueError(
                f"batch_size should not be read where several processes run, since the sampler already gives rank "
                f"{self.rank} its share and a library that reads it would divide the batches again; for Lightning and "
                f"Fabric, pass use_distributed_sampler=False; for Accelerate, use "
                f"replenish.integrations.accelerate.prepare; the global batch size is sampler.order.batch_size"
            )
        return self.order.batch_size


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
        drop_last: Whether an epoch has N/B steps rounded down instead of up, as `len(DataLoader)` counts them. SRS has
            no short batch, so nothing is dropped.

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
        order = SequencedReplacement(
            _length_of(data_source), batch_size, seed=seed, pool_size=pool_size, sequence=sequence
        )
        super().__init__(order, num_replicas=num_replicas, rank=rank)
        self.steps_per_epoch = _steps_per_epoch(order, drop_last)
        self.drop_last = drop_last


class ReshufflingBatchSampler(OrderBatchSampler):
    """Ordinary shuffling with exact resume: every epoch is a new permutation of the samples.

    It shuffles as `DataLoader(shuffle=True)` does, but its random numbers depend only on the seed, the epoch and the
    sizes. So a run resumes at any step, on any number of processes, without the state of a generator.

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
        order = RandomReshuffling(_length_of(data_source), batch_size, seed=seed, drop_last=drop_last)
        super().__init__(order, num_replicas=num_replicas, rank=rank)


class SRSSampler(StepSampler[int], DistributedSampler[int]):  # type: ignore[override]
    """Sequenced-replacement sampling index by index, for code that takes a `sampler` but not a batch sampler.

    It yields this process's share of every batch, one index after the other. A DataLoader that groups them by
    `batch_size / num_replicas` gets the batches of `SRSBatchSampler`. Its length is in indices; `seek` and the state
    count steps. The arguments are those of `SRSBatchSampler`. It is a `DistributedSampler`, so Lightning and Fabric see
    that it divides its indices among processes and keep it.

    Attributes:
        dataset: The data source.
        shuffle: True.
        seed: The seed.

    Example:
        >>> sampler = SRSSampler(range(100), 10, seed=1)
        >>> len(sampler), list(sampler)[:10] == next(iter(SRSBatchSampler(range(100), 10, seed=1)))
        (100, True)
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
        order = SequencedReplacement(
            _length_of(data_source), batch_size, seed=seed, pool_size=pool_size, sequence=sequence
        )
        super().__init__(order, num_replicas=num_replicas, rank=rank)
        self.steps_per_epoch = _steps_per_epoch(order, drop_last)
        self.dataset: Any = data_source
        self.shuffle, self.drop_last, self.seed = True, drop_last, order.seed

    def __len__(self) -> int:
        return self.num_samples

    @property
    def share_size(self) -> int:
        """The indices of one batch that this process gets."""
        return self.order.batch_size // self.num_replicas

    @property
    def num_samples(self) -> int:  # type: ignore[override]
        """The indices of one epoch on this process."""
        return self.steps_per_epoch * self.share_size

    @property
    def total_size(self) -> int:  # type: ignore[override]
        """The indices of one epoch on all processes."""
        return self.num_samples * self.num_replicas

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned. Earlier releases also saved positions within a batch."""
        step, offset = state.load(self.order, state_dict), state_dict.get("offset", 0)
        if offset and state_dict.get("share_size") != self.share_size:
            raise ValueError(
                f"state should come from a process with the same share of a batch, since it was saved within a batch, "
                f"but share_size is {state_dict.get('share_size')!r} in the state and {self.share_size} here"
            )
        offset = checks.integer("offset in state", offset, minimum=0, maximum=self.share_size - 1)
        self._restore(step, offset)

    @property
    def items_per_step(self) -> int:
        """The number of items of a pass in one step on this process: `share_size`."""
        return self.share_size

    def _items(self, start: int, stop: int) -> Iterator[int]:
        return chain.from_iterable(super()._items(start, stop))


def _length_of(data_source: Sized) -> int:
    """Return the number of samples of `data_source`, or raise if it is not a dataset with a length."""
    if isinstance(data_source, Sampler):
        raise TypeError(
            f"data_source should be the dataset itself, since the order chooses the indices, but got a "
            f"{type(data_source).__name__}. {REBUILT}"
        )
    try:
        num_samples = len(data_source)
    except TypeError:
        raise TypeError(
            f"data_source should be a dataset with a length, but got one of type {type(data_source).__name__}; "
            f"range(n) stands for n samples; for data that stream, see replenish.stream"
        ) from None
    if num_samples == 0:
        raise ValueError("data_source should have at least one sample, but its length is 0")
    return num_samples


def _steps_per_epoch(order: SequencedReplacement, drop_last: bool) -> int:
    """Return the number of steps in an effective epoch, as `len(DataLoader)` counts them."""
    if not checks.boolean("drop_last", drop_last):
        return order.steps_per_epoch
    if order.batch_size > order.sequence_length:
        raise ValueError(
            f"batch_size should be at most the number of samples with drop_last=True, since an epoch would have no "
            f"step, but got batch_size={order.batch_size} and {order.sequence_length} samples"
        )
    return order.sequence_length // order.batch_size
