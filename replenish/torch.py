"""PyTorch samplers over an `Order`: what a `DataLoader` takes as `batch_sampler` or `sampler`; and streams, by name.

All of them count *steps* of the global stream, which never ends. A pass (one `iter()`) ends at the next
multiple of the steps of an effective epoch. Nothing is drawn or counted before the first `next()` of a pass,
since a DataLoader with workers asks for two iterators and uses one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sized
from typing import Any, Generic, TypeVar

import numpy.typing as npt

try:
    from torch.utils.data import Sampler
    from torch.utils.data.distributed import DistributedSampler
except ImportError as error:
    raise ImportError("replenish.torch needs PyTorch: pip install 'replenish[torch]'") from error

from replenish import checks, state
from replenish.order import Cursor, CursorOrder, Order
from replenish.sequenced import SequencedReplacement
from replenish.sharding import check_shares, share_of
from replenish.torch_replicas import current_replicas
from replenish.torch_stream import PooledIterableDataset as PooledIterableDataset

Item = TypeVar("Item", int, list[int])

# Lists are made of this many indices at a time: more Python ints than fit the cache cost twice as much each.
INDICES_PER_LIST_OF_LISTS = 8192


class _Position(Sampler[Item], Generic[Item]):
    """What the samplers share: a position in an order's stream, and this process's share of its batches."""

    def __init__(self, order: Order, steps: int, num_replicas: int | None, rank: int | None) -> None:
        self.order = order
        self.num_replicas, self.rank = current_replicas(num_replicas, rank)
        check_shares(order, self.num_replicas)
        self.steps_per_epoch = steps
        self._cursor: Cursor | None = None
        self.seek(0)

    @property
    def batch_size(self) -> int:
        """How many samples a step draws over all processes."""
        return self.order.batch_size

    def seek(self, step: int) -> None:
        """Make the next pass begin at `step`, counted from the start of the run.

        To resume, give the number of steps *trained*: workers prefetch, so the sampler itself is ahead of
        them. At a multiple of the epoch's steps, the next pass is a whole epoch.
        """
        self._next_start = checks.step(step)
        self._step = self._next_start

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass begin at the start of `epoch`: an absolute position, whatever went before."""
        self.seek(checks.integer("epoch", epoch, minimum=0) * self.steps_per_epoch)

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings, a few hundred bytes whatever the data's size.

        Args:
            step: The number of steps trained so far. None means the steps drawn from this sampler, which
                is the same only without workers.
        """
        return state.save(self.order, self._step if step is None else step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned, also one of a run with another number of processes.

        Raises:
            ValueError: The state is of another order; the message names what differs.
        """
        self.seek(state.load(self.order, state_dict))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_cursor": None}

    def _lists(self, start: int, stop: int) -> Iterator[list[int]]:
        """Yield this process's share of the batches of the steps from `start` to `stop`."""
        if isinstance(self.order, CursorOrder):
            # Passes share a cursor: each begins where the last one ended, and need not look for the place.
            if self._cursor is None:
                self._cursor = self.order.cursor()
            for block in self.order.blocks(start, stop, self._cursor):
                # A short last batch is a block of its own.
                share = share_of(block.shape[1], self.num_replicas, self.rank)
                rows = max(1, INDICES_PER_LIST_OF_LISTS // block.shape[1])
                for first in range(0, len(block), rows):
                    yield from block[first : first + rows, share].tolist()
        else:
            for batch in self.order.batches(start, stop):
                yield batch[share_of(len(batch), self.num_replicas, self.rank)].tolist()


class _Pass(Iterator[list[int]]):
    """One pass over an `OrderBatchSampler`: the rest of an epoch.

    It has a state of its own for torchdata's StatefulDataLoader, which restores the sampler *and* the
    iterator: a pass restored at its end is empty, while a sampler that is put there begins an epoch.
    """

    def __init__(self, sampler: _Position[Any]) -> None:
        self._sampler = sampler
        self._lists: Iterator[list[int]] | None = None
        self._restored: tuple[int, int] | None = None

    def _bounds(self) -> tuple[int, int]:
        """Return the steps at which a pass that begins now would begin and end."""
        if self._restored is not None:
            return self._restored
        start, steps = self._sampler._next_start, self._sampler.steps_per_epoch
        return start, (start // steps + 1) * steps

    def _begin(self) -> Iterator[list[int]]:
        start, self._end = self._bounds()
        self._sampler._step = self._step = start
        self._sampler._next_start = self._end
        return self._sampler._lists(start, self._end)

    def __next__(self) -> list[int]:
        if self._lists is None:
            self._lists = self._begin()
        batch = next(self._lists)
        self._step += 1
        self._sampler._step = self._step
        return batch

    def state_dict(self) -> dict[str, int]:
        """Return where this pass stands and ends."""
        step, end = self._bounds() if self._lists is None else (self._step, self._end)
        return {"step": step, "end": end}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go to where `state_dict` was taken, possibly the end."""
        self._restored = (state_dict["step"], state_dict["end"])
        self._lists = None


class OrderBatchSampler(_Position[list[int]]):
    """Any `Order` as a batch sampler: lists of Python ints, one effective epoch a pass, without end.

    Give it to `DataLoader(batch_sampler=...)`. Every process draws the same global batch and takes its
    contiguous share, so the stream of global batches is the same on any number of processes. Successive
    passes go on from epoch to epoch, each from where the last one was to end, even if it was left early;
    `set_epoch`, `seek` and `load_state_dict` put the next pass anywhere.

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
        if isinstance(order, Sampler):
            raise TypeError(_rebuilt("order", order))
        if not isinstance(order, Order):
            raise TypeError(f"order should be an Order of replenish, but got a {type(order).__name__}")
        super().__init__(order, order.steps_per_epoch, num_replicas, rank)

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        return _Pass(self)


class SRSBatchSampler(OrderBatchSampler):
    """Sequenced-replacement sampling as a drop-in batch sampler (the paper's section 2).

    `DataLoader(dataset, batch_size=64, shuffle=True)` becomes
    `DataLoader(dataset, batch_sampler=SRSBatchSampler(dataset, 64))`. See `SequencedReplacement` for the method and
    `OrderBatchSampler` for passes, positions and processes.

    Args:
        data_source: The dataset; its length is the number of samples.
        batch_size: The global batch, the paper's B; with `num_replicas=n` a process gets B/n of each batch.
        seed: Chooses the draws and the shuffled sequence; the same on all processes.
        pool_size: The number of slots; None means the number of samples, the paper's.
        sequence: `"shuffled"`, `"identity"` or an array of indices.
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
        order = _srs_order(data_source, batch_size, seed, pool_size, sequence)
        super().__init__(order, num_replicas=num_replicas, rank=rank)
        self.steps_per_epoch = _steps(order, drop_last)
        self.drop_last = drop_last


class _IndexPass(Iterator[int]):
    """One pass over an `SRSSampler`, index by index."""

    def __init__(self, sampler: SRSSampler) -> None:
        self._sampler = sampler
        self._batches = _Pass(sampler)
        self._rest: Iterator[int] = iter(())  # what is left of the batch drawn last
        self._skip: int | None = None  # how much of the first batch was drawn before; None: the sampler knows

    def __next__(self) -> int:
        for index in self._rest:
            return index
        batch = next(self._batches)
        skip = self._sampler._skip if self._skip is None else self._skip
        self._skip = self._sampler._skip = 0
        self._rest = self._sampler._rest = iter(batch[skip:])
        return next(self._rest)

    def state_dict(self) -> dict[str, int]:
        """Return where this pass stands and ends."""
        left = operator.length_hint(self._rest)
        position = self._batches.state_dict()
        if left:
            return {**position, "step": position["step"] - 1, "offset": self._sampler.share_size - left}
        return {**position, "offset": self._sampler._skip if self._skip is None else self._skip}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go to where `state_dict` was taken, possibly the end."""
        self._batches.load_state_dict(state_dict)
        self._skip, self._rest = state_dict["offset"], iter(())


class SRSSampler(_Position[int], DistributedSampler[int]):
    """Sequenced-replacement sampling index by index, for what takes a `sampler` but no batch sampler.

    It yields this process's share of every batch, one index after the other: cut into batches of
    `batch_size / num_replicas` by a DataLoader, they are the batches of `SRSBatchSampler`. Its length is in
    indices; `seek` and the state count steps, as everywhere (and indices within a step, where one was left).
    The arguments are those of `SRSBatchSampler`. It is a `DistributedSampler` in name, so that Lightning and Fabric
    know that it divides its indices among processes and leave it as it is.

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
        order = _srs_order(data_source, batch_size, seed, pool_size, sequence)
        super().__init__(order, _steps(order, drop_last), num_replicas, rank)
        self.drop_last = drop_last
        self.share_size = order.batch_size // self.num_replicas

    def __len__(self) -> int:
        return self.steps_per_epoch * self.share_size

    def __iter__(self) -> Iterator[int]:
        return _IndexPass(self)

    def seek(self, step: int) -> None:
        """Make the next pass begin at `step`; see `OrderBatchSampler.seek`."""
        super().seek(step)
        self._skip = 0
        self._rest: Iterator[int] = iter(())

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings; see `OrderBatchSampler.state_dict`."""
        left = operator.length_hint(self._rest)
        if step is None and left:
            position, offset = super().state_dict(self._step - 1), self.share_size - left
        else:
            position, offset = super().state_dict(step), self._skip if step is None else 0
        return {**position, "offset": offset, "share_size": self.share_size}

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned; see `OrderBatchSampler.load_state_dict`."""
        super().load_state_dict(state_dict)
        offset = checks.integer("offset in state", state_dict.get("offset", 0), minimum=0)
        if offset and state_dict.get("share_size") != self.share_size:
            raise ValueError(
                f"state should be of a process with the same share of a batch, since it was taken within a batch, but "
                f"share_size is {state_dict.get('share_size')!r} in the state but {self.share_size} here"
            )
        self._skip = offset


def _steps(order: SequencedReplacement, drop_last: bool) -> int:
    """Return the steps of an effective epoch, as `len(DataLoader)` counts them."""
    if not checks.boolean("drop_last", drop_last):
        return order.steps_per_epoch
    if order.batch_size > order.num_samples:
        raise ValueError(
            f"batch_size should be at most the number of samples with drop_last=True, since an epoch would have no "
            f"step, but got batch_size={order.batch_size} and {order.num_samples} samples"
        )
    return order.num_samples // order.batch_size


def _rebuilt(name: str, value: object) -> str:
    return (
        f"{name} should not be a Sampler, but got a {type(value).__name__}: Lightning and Fabric rebuild batch "
        f"samplers this way, which would lose the stream; pass use_distributed_sampler=False to the Trainer or to "
        f"setup_dataloaders(), for this sampler divides its batches among processes by itself"
    )


def _srs_order(
    data_source: Sized, batch_size: int, seed: int, pool_size: int | None, sequence: str | npt.ArrayLike
) -> SequencedReplacement:
    if isinstance(data_source, Sampler):
        raise TypeError(_rebuilt("data_source", data_source))
    try:
        num_samples = len(data_source)
    except TypeError:
        raise TypeError(
            f"data_source should be a dataset with a length, but got a {type(data_source).__name__} without one; "
            f"for data that stream, see replenish.stream"
        ) from None
    if num_samples == 0:
        raise ValueError("data_source should have at least one sample, but its length is 0")
    return SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size, sequence=sequence)
