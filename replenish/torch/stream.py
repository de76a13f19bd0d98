"""A pooled stream as a PyTorch `IterableDataset`: divided over processes and workers, resumable to the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch
from torch.utils.data import IterableDataset, get_worker_info

from replenish import checks
from replenish.stream.pooled import PooledStream
from replenish.stream.shards import batches_together, share_of_source, shares_of_length
from replenish.stream.sources import Source, check_not_divided
from replenish.stream.window import seed_of_part
from replenish.torch.loaders import check_stream_is_resumed, is_numbered_by_a_loader, is_restored_by_a_loader
from replenish.torch.replicas import current_replicas
from replenish.torch.stream_pass import StreamPass

T = TypeVar("T")

# More workers than any DataLoader has.
MOST_WORKERS = 4096


class PooledIterableDataset(IterableDataset[list[T]], Generic[T]):
    """`PooledStream` for a `DataLoader`: every worker of every process has its part of the source and its own pool.

    It yields whole batches, so give it to `DataLoader(dataset, batch_size=None, collate_fn=...)`, where `collate_fn`
    takes a list of items (torch's `default_collate`, say). Consumer number `rank + num_replicas * worker` reads every
    (num_replicas * workers)-th shard of a `Shards`, or item of any other source, from its own number on: nothing is
    read twice, nothing left out. Draws differ between consumers; without workers and processes the batches are those
    of `PooledStream` with the same arguments.

    A pass is a pure function of the arguments and the epoch. Passes follow each other from epoch to epoch; one that
    is left early is not counted, and `set_epoch` puts the next one anywhere. Passes of a source that repeats go on
    from each other; with `repeat=False` each is a whole pass over the data with draws of its own.

    The source is asked for all its items in every worker: it is not told that it is in one, since datasets of Hugging
    Face and WebDataset would otherwise give a part of them alone.

    With several processes all of them give the same number of batches in a pass, so that none waits for another:
    `steps_per_epoch`, or with `repeat=False` that of the process with the fewest, which takes sources of known length.

    Args:
        source: An iterable or a callable `start -> iterable`; see `PooledStream`. Workers get it pickled or forked.
        batch_size: How many items a batch of *one process* has: each process reads its own shards.
        pool_size: The number of slots of *one worker's* pool.
        seed: Chooses the draws; the same on all processes.
        repeat: Whether the source begins again at its end, or every item comes once in a pass.
        steps_per_epoch: How many batches a pass of one process has; None with `repeat=True` is a pass without end.
        num_replicas: The number of processes; default: torch.distributed's if it is initialised, else 1.
        rank: The number of this process; default: torch.distributed's if it is initialised, else 0.
        store_items: Whether the state holds the pool's items; see `PooledStream`.
        source_continues: See `PooledStream`.
        seek_cost: See `PooledStream`.

    Example:
        >>> from torch.utils.data import DataLoader
        >>> dataset = PooledIterableDataset(range(10), batch_size=4, pool_size=5, repeat=False)
        >>> sorted(sum(DataLoader(dataset, batch_size=None), []))
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(
        self,
        source: Source[T],
        *,
        batch_size: int,
        pool_size: int,
        seed: int = 0,
        repeat: bool = True,
        steps_per_epoch: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
        store_items: bool = False,
        source_continues: bool = False,
        seek_cost: int = 1024,
    ) -> None:
        self.source = source
        self.num_replicas, self.rank = current_replicas(num_replicas, rank)
        self.steps_per_epoch = steps_per_epoch
        self.options: dict[str, Any] = {
            "batch_size": batch_size,
            "pool_size": pool_size,
            "repeat": repeat,
            "store_items": store_items,
            "source_continues": source_continues,
            "seek_cost": seek_cost,
        }
        # A wrong argument is an error here, not in a worker.
        self.seed = PooledStream(source, seed=seed, **self.options).seed
        if steps_per_epoch is not None:
            self.steps_per_epoch = checks.integer("steps_per_epoch", steps_per_epoch, minimum=1)
            if not repeat:
                raise ValueError(
                    f"steps_per_epoch should be None with repeat=False, where a pass ends with the source, but got "
                    f"{steps_per_epoch}"
                )
        if not repeat and self.num_replicas > 1 and shares_of_length(source, 1) is None:
            raise ValueError(
                f"source should have a known length with repeat=False and several processes, for they must end "
                f"together, but got a {type(source).__name__} without one and num_replicas={self.num_replicas}; give "
                f"Shards(..., lengths=...), or repeat=True with steps_per_epoch"
            )
        check_not_divided(source, self.num_replicas)
        # In shared memory, so that workers that persist hear of a new epoch: [the epoch of the next pass, how often
        # `set_epoch` was called, with what].
        self._set = torch.zeros(3, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        # And what is heard of the workers: how many there are, and how many epochs each has brought to their end.
        self._ended = torch.zeros(1 + MOST_WORKERS, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        # How often `set_epoch` had been called when each began its latest pass.
        self._began = torch.zeros(MOST_WORKERS, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self._restored: int | None = None  # in a worker: the epoch of a state, for the first pass after it
        self._kept: tuple[tuple[int, int], PooledStream[T]] | None = None
        self._iterator_read = False

    @property
    def epoch(self) -> int:
        """The epoch that the next pass gives."""
        info = get_worker_info()  # a worker may ask before any has said how many they are
        workers = max(1, int(self._ended[0]) if info is None else info.num_workers)
        return max(int(self._set[0]), int(self._ended[1 : 1 + workers].min()))

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass that of `epoch`: an absolute position."""
        if is_numbered_by_a_loader():
            return
        epoch = checks.integer("epoch", epoch, minimum=0, maximum=2**40)
        if epoch and self.options["repeat"] and self.steps_per_epoch is None:
            raise ValueError(
                f"steps_per_epoch should be given for set_epoch with repeat=True, where a pass has no end of its own, "
                f"but it is None and epoch is {epoch}"
            )
        self._ended.zero_()
        self._set[0] = self._set[2] = epoch
        self._set[1] += 1

    def state_dict(self) -> dict[str, int]:
        """Return the epoch; a pass has a state of its own, and torchdata's StatefulDataLoader keeps both."""
        info = get_worker_info()
        # A worker speaks for itself: how far the others are is a matter of moments.
        return {"epoch": self.epoch if info is None else max(int(self._set[0]), int(self._ended[1 + info.id]))}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Make the next pass that of the epoch that `state_dict` returned."""
        epoch = checks.integer("epoch in state", state_dict.get("epoch"), minimum=0, maximum=2**40)
        if (info := get_worker_info()) is None:
            self._set[0] = epoch
            if not is_restored_by_a_loader():
                self._ended.zero_()
                self._set[2] = epoch
            return
        self._restored = epoch
        # Where the state was taken at the end of a pass, the next one is begun by workers that get no state.
        self._ended[0] = info.num_workers
        self._ended[1 + info.id] = epoch

    def __len__(self) -> int:
        check_stream_is_resumed(told=self.epoch > 0 or int(self._set[1]) > 0)
        if self.steps_per_epoch is None:
            raise TypeError(
                "a PooledIterableDataset has a length only with steps_per_epoch: the batches of a whole pass over a "
                "source depend on the number of workers"
            )
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[list[T]]:
        return StreamPass(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": None}

    def _stream(self, consumer: int, consumers: int, epoch: int) -> tuple[PooledStream[T] | None, bool]:
        """Return the stream of a consumer's pass, None if it has no items at all, and whether it begins anew."""
        source = share_of_source(self.source, consumer, consumers)
        lengths = shares_of_length(self.source, consumers)
        shards = getattr(source, "shards", None)
        if (lengths is not None and lengths[consumer] == 0) or shards == []:
            if not self.options["repeat"]:
                return None, True
            raise ValueError(
                f"source should have at least one shard for each of the {consumers} workers of all processes with "
                f"repeat=True, but worker {consumer} got nothing; take fewer workers or more shards"
            )
        seed = seed_of_part(self.seed, consumer)
        if not self.options["repeat"]:
            return PooledStream(source, seed=seed_of_part(seed, epoch), **self.options), True
        # A stream that goes on from pass to pass keeps its pool, where the process does. A pass has it for itself.
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == (consumer, consumers):
            return kept[1], False
        return PooledStream(source, seed=seed, **self.options), True

    def _check_unread(self) -> None:
        """Refuse to begin anew with an iterator that an earlier pass has read from: its pool would be lost."""
        if isinstance(self.source, Iterator):
            if self._iterator_read:
                raise ValueError(
                    "source should be one that can begin again to be passed over more than once, but it is an iterator "
                    "that an earlier pass has read from; give an iterable or a callable start -> iterable"
                )
            self._iterator_read = True

    def _bounds(self, consumer: int, consumers: int, epoch: int) -> tuple[int, int | None]:
        """Return the steps of a consumer's own stream at which its pass begins and ends."""
        if self.options["repeat"]:
            if self.steps_per_epoch is None:
                return 0, None
            # A DataLoader asks its workers in turn.
            workers, worker = consumers // self.num_replicas, consumer // self.num_replicas
            quota = len(range(worker, self.steps_per_epoch, workers))
            return epoch * quota, (epoch + 1) * quota
        if self.num_replicas == 1:
            return 0, None
        lengths = shares_of_length(self.source, consumers)
        assert lengths is not None
        together = batches_together(lengths, self.num_replicas, self.options["batch_size"])
        if not any(together):
            raise ValueError(
                f"source should have items for each of the {self.num_replicas} processes, but one has none, so that "
                f"all would end at once; take fewer processes or more shards"
            )
        return 0, together[consumer]
