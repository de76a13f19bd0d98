"""A pooled stream as a PyTorch `IterableDataset`, divided over processes and workers and resumable at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import torch
from torch.utils.data import IterableDataset

from replenish import checks, state
from replenish.stream.pooled import PooledStream
from replenish.stream.shards import batches_together, shares_of_length
from replenish.stream.sources import Opener, Source
from replenish.torch.step_sampler import current_replicas, going_back, not_drawn
from replenish.torch.stream_pass import StatefulStream, StreamPass

T = TypeVar("T")


class PooledIterableDataset(IterableDataset[list[T]], Generic[T]):
    """`PooledStream` for a `DataLoader`: every worker of every process has a part of the source and its own pool.

    It yields batches, so give it to `DataLoader(dataset, batch_size=None, num_workers=..., collate_fn=...)`,
    where `collate_fn` takes a list of items, as torch's `default_collate` does. Each worker of each process is a
    consumer, with the number `rank + num_replicas * worker`. Starting from its own number, it reads every
    (num_replicas * workers)-th shard of a `Shards`, or every such item of another source. So the consumers together
    read each item once. The draws differ between consumers. With one process and no workers, the batches are those of
    `PooledStream` with the same arguments.

    A source for several consumers must be a `Shards`, a sequence, or a callable `start -> iterable` that gives the
    same items in the same order in every worker, process and run. The source must not divide itself among workers.

    Positions follow the contract of the samplers (see docs/howto/resume.md), with one more rule. The main process does
    not know what its workers have drawn. So with `num_workers > 0`, call `set_epoch`, `seek` or `load_state_dict`
    before every pass, and leave `persistent_workers` False. Other passes raise.

    Args:
        source: An iterable or a callable `start -> iterable`; see `PooledStream`. Workers get it pickled or forked.
        batch_size: The number of items in a batch of *one process*: each process reads its own shards.
        pool_size: The number of slots of *one worker's* pool.
        seed: Chooses the draws; the same on all processes.
        repeat: Whether the source starts again at its end. Otherwise every item comes once per pass.
        steps_per_epoch: The number of batches in a pass of one process. With `repeat=True`, None means a pass without
            end. With `repeat=False`, leave it out: it is computed if the length of the source is known.
        num_workers: The `num_workers` of the loader. The batches depend on it, so another number raises.
        num_replicas: The number of processes; None means torch.distributed's, or 1 without it.
        rank: The number of this process; None means torch.distributed's, or 0 without it.
        store_items: Whether the state of `dataset.stateful()` in torchdata's loader holds the pool's items; see
            `PooledStream`.
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
        num_workers: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
        store_items: bool = False,
        source_continues: bool = False,
        seek_cost: int = 1024,
    ) -> None:
        self.source = source
        self.num_workers = checks.integer("num_workers", num_workers, minimum=0, maximum=2**16)
        self.num_replicas, self.rank = current_replicas(num_replicas, rank)
        self.options: dict[str, Any] = {
            "batch_size": batch_size,
            "pool_size": pool_size,
            "repeat": repeat,
            "store_items": store_items,
            "source_continues": source_continues,
            "seek_cost": seek_cost,
        }
        # Making a stream checks the arguments here, not in a worker.
        self.seed = PooledStream(source, seed=seed, **self.options).seed
        self._seekable = Opener(source).seekable
        self._check_source()
        self.batches_of_workers = self._count_batches(steps_per_epoch)
        self.steps_per_epoch = None if self.batches_of_workers is None else sum(self.batches_of_workers)
        self.ignores_set_epoch = False
        self.expected_start: Callable[[], int] | None = None
        self._is_set = False  # whether a call set the position, not the end of a pass
        self._lowest = 0  # the lowest step that `state_dict` accepts
        self._latest: StreamPass[T] | None = None  # the latest pass in this process
        self._iterator_read = False
        self._epoch = self._within = 0  # the epoch, and the step in it, at which the next pass begins
        self._moves = 1  # how often that position was set, counting the initial position
        # The workers share these two tensors and have copies of everything else.
        # For each worker: `_moves` at its latest pass, and a checksum of its first items.
        self._passes = torch.zeros(max(1, self.num_workers), 2, dtype=torch.int64)
        # The last position that was set, as one number, so that a worker never reads half of it; see `_position_set`.
        self._position = torch.zeros(1, dtype=torch.int64)
        self._share()

    def __iter__(self) -> Iterator[list[T]]:
        return StreamPass(self)

    def __len__(self) -> int:
        if self.steps_per_epoch is None:
            raise TypeError(
                "a PooledIterableDataset has a length only with steps_per_epoch, or with repeat=False and a source of "
                "known length"
            )
        return self.steps_per_epoch

    def stateful(self) -> StatefulStream[T]:
        """Return this dataset for torchdata's `StatefulDataLoader`, whose own state then holds the position."""
        return StatefulStream(self)

    @property
    def epoch(self) -> int:
        """The epoch of the next pass, or of the latest one if the position was not set since."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass begin at the start of `epoch`.

        If `seek` or `load_state_dict` restored a step within that epoch, it is kept, and the next pass is the rest of
        the epoch. A pass of another epoch that is still under way raises at its next batch.

        Raises:
            ValueError: The position was set to a later epoch, and no pass has begun there.
        """
        epoch = checks.integer("epoch", epoch, minimum=0, maximum=2**40)
        if self.ignores_set_epoch:
            return
        if epoch and self.options["repeat"] and self.steps_per_epoch is None:
            raise ValueError(
                f"steps_per_epoch should be given for set_epoch with repeat=True, where a pass has no end, but it is "
                f"None and epoch is {epoch}"
            )
        if self._is_set and not self._has_begun() and epoch <= self._epoch:
            if epoch == self._epoch:
                return
            raise going_back(epoch, self._epoch, self._step_of(self._epoch, self._within), self.steps_per_epoch)
        self._set(epoch, 0, sought=False)

    def seek(self, step: int) -> None:
        """Let the next pass begin at `step`, in batches of this process counted from the start of the run.

        A pass that is still under way raises at its next batch, unless it began at `step` or ends there.

        Raises:
            ValueError: The steps of an epoch are not known, or the source cannot begin at a position.
        """
        self._set(*self._place_of(checks.step(step)), sought=True)

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings, a few hundred bytes.

        Args:
            step: The steps trained: `epoch * steps_per_epoch` plus the batches trained in that epoch. None is accepted
                only if no pass has begun since the position was set, since a loader prefetches.

        Raises:
            ValueError: The step is missing, is outside the steps drawn, or could not be resumed.
        """
        epoch, begun = self._epoch, self._has_begun()
        if step is None:
            if begun:
                raise ValueError(
                    "step should be the number of steps trained, since a pass has begun and a loader may have "
                    "prefetched, but got None; call state_dict(step), or set_epoch(epoch) before it (for torchdata's "
                    "StatefulDataLoader, give it dataset.stateful())"
                )
            step = self._step_of(epoch, self._within)
        step = checks.step(step)
        self._place_of(step)
        if begun:
            end = None if self.steps_per_epoch is None else (epoch + 1) * self.steps_per_epoch
            highest = end if self.num_workers or self._latest is None else self._step_of(epoch, self._latest.drawn)
            if step < self._lowest or (highest is not None and step > highest):
                raise not_drawn(step, self._lowest, highest, self.steps_per_epoch)
        return state.save(self, step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Let the next pass begin at a position that `state_dict` returned.

        Raises:
            ValueError: The state belongs to another stream. The message names the differences.
        """
        if isinstance(state_dict, Mapping) and set(state_dict) == {"epoch"}:  # from an early version
            epoch = checks.integer("epoch in state", state_dict["epoch"], minimum=0, maximum=2**40)
            self._set(epoch, 0, sought=True)
        else:
            self.seek(state.load(self, state_dict))

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that, with the source, identify the stream; 0 means unknown."""
        return {
            **PooledStream(self.source, seed=self.seed, **self.options).config(),
            "order": type(self).__name__,
            "steps_per_epoch": self.steps_per_epoch or 0,
            "num_workers": self.num_workers,
            "num_replicas": self.num_replicas,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_latest": None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved)
        self._share()

    def _share(self) -> None:
        """Move the tensors to shared memory, unless they are there already, as in a worker."""
        for shared in (self._passes, self._position):
            shared.share_memory_()  # type: ignore[no-untyped-call]

    def _set(self, epoch: int, within: int, *, sought: bool) -> None:
        self._is_set, self._lowest = True, self._step_of(epoch, within)
        self._move(epoch, within, sought)

    def _move(self, epoch: int, within: int, sought: bool = False) -> None:
        self._epoch, self._within, self._moves = epoch, within, self._moves + 1
        known = self.steps_per_epoch is not None or self.options["repeat"]
        place = self._step_of(epoch, within) if known else epoch
        self._position[0] = ~place if sought else place

    def _position_set(self) -> tuple[int, int, bool]:
        """Return the epoch of the last position that was set, the step in it, and whether `seek` set it."""
        place = int(self._position[0])
        sought, place = place < 0, max(place, ~place)
        if self.steps_per_epoch is not None:
            return *divmod(place, self.steps_per_epoch), sought
        return (0, place, sought) if self.options["repeat"] else (place, 0, sought)

    def _has_begun(self) -> bool:
        """Whether a pass has begun since the position was set."""
        return bool((self._passes[:, 0] == self._moves).any())

    def _step_of(self, epoch: int, within: int) -> int:
        return epoch * (self.steps_per_epoch or 0) + within

    def _place_of(self, step: int) -> tuple[int, int]:
        """Return the epoch of a step and the step within that epoch; raise if no pass can begin there."""
        if step and self.steps_per_epoch is None and not self.options["repeat"]:
            raise ValueError(
                f"source should have a known length to count steps with repeat=False, but got a "
                f"{type(self.source).__name__} without one and step {step}; give Shards(..., lengths=...), call "
                f"set_epoch, or give dataset.stateful() to torchdata's StatefulDataLoader"
            )
        epoch, within = divmod(step, self.steps_per_epoch) if self.steps_per_epoch else (0, step)
        if not self._seekable and (within or (step and self.options["repeat"])):
            raise ValueError(
                f"source should be able to begin at a position for step {step}, but got a "
                f"{type(self.source).__name__}; give a callable start -> iterable, or store_items=True and "
                f"dataset.stateful() to torchdata's StatefulDataLoader"
            )
        return epoch, within

    def _check_source(self) -> None:
        consumers = max(1, self.num_workers) * self.num_replicas
        if consumers > 1 and not self._seekable:
            raise ValueError(
                f"source should be a Shards, a sequence or a callable start -> iterable to be divided among "
                f"{consumers} consumers (num_workers={self.num_workers}, num_replicas={self.num_replicas}), since a "
                f"change of its order would lose items, but got a {type(self.source).__name__}"
            )
        if self.num_workers and isinstance(self.source, Iterator):
            raise ValueError(
                f"num_workers should be 0 for a source that is an iterator, since every worker would get a copy of it, "
                f"but got {self.num_workers}"
            )

    def _count_batches(self, steps_per_epoch: int | None) -> list[int] | None:
        """Return how many batches each worker of this process gives in a pass, or None if that is not known."""
        workers = max(1, self.num_workers)
        if self.options["repeat"]:
            if steps_per_epoch is None:
                return None
            steps = checks.integer("steps_per_epoch", steps_per_epoch, minimum=1)
            return [len(range(worker, steps, workers)) for worker in range(workers)]
        if steps_per_epoch is not None:
            raise ValueError(
                f"steps_per_epoch should be None with repeat=False, where a pass ends with the source, but got "
                f"{steps_per_epoch}"
            )
        lengths = shares_of_length(self.source, self.num_replicas * workers)
        if lengths is None:
            if self.num_replicas > 1:
                raise ValueError(
                    f"source should have a known length with repeat=False and several processes, which must end "
                    f"together, but got a {type(self.source).__name__} without one and "
                    f"num_replicas={self.num_replicas}; give Shards(..., lengths=...), or repeat=True with "
                    f"steps_per_epoch"
                )
            return None
        together = batches_together(lengths, self.num_replicas, self.options["batch_size"])
        if not any(together):
            raise ValueError(
                f"source should have items for each of the {self.num_replicas} processes, but one has none, so that "
                f"all would end at once; take fewer processes or more shards"
            )
        return together[self.rank :: self.num_replicas]
