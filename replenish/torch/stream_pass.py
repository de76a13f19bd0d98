"""One pass over a pooled stream by one consumer, which is one worker of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch.utils.data import IterableDataset, get_worker_info

from replenish import checks
from replenish.locks import ForkSafeLock
from replenish.state import differences
from replenish.stream.pooled import PooledStream
from replenish.stream.shards import Shards, share_of_source, shares_of_length, taken_in_turn
from replenish.stream.sources import checksum
from replenish.stream.window import seed_of_part
from replenish.torch.step_sampler import check_start

if TYPE_CHECKING:
    from replenish.torch.stream import PooledIterableDataset

T = TypeVar("T")

# How many of the first items of a callable source the workers of a pass compare.
COMPARED = 4


class StreamPass(Iterator[list[T]], Generic[T]):
    """One pass of one consumer. It begins at its first batch, from the position that the dataset has then.

    Attributes:
        epoch: The epoch of the pass.
        drawn: The step within the epoch after the last batch drawn, if the process has only this consumer.
    """

    def __init__(self, dataset: PooledIterableDataset[T]) -> None:
        self.epoch = self.drawn = 0
        self._dataset = dataset
        self._lock = ForkSafeLock()
        self._worker = 0  # the worker whose part of the source it reads; after `seek`, it may not be this one
        self._moves = 0  # the dataset's `_moves` when the pass began; 0 before it begins
        self._place = (0, 0)  # the dataset's position when the pass began, or when a state was loaded
        self._stream: PooledStream[T] | None = None  # None if there are no items
        self._end: int | None = None  # the step of the stream at which the pass ends
        self._is_over = self._is_taken = False
        self._is_before_place = False  # whether a state was loaded of the epoch before the one that was set

    def __next__(self) -> list[T]:
        with self._lock.lock:
            if not self._moves:
                self._begin()
            if self._is_over:
                raise StopIteration
            if self._is_before_place:
                raise ValueError(
                    f"set_epoch should be called with epoch {self.epoch} of the loader's state first, since the loader "
                    f"was saved before it reached the end of that pass, but got {self.epoch + 1}"
                )
            self._check_position()
            try:
                if self._stream is None or (self._end is not None and self._stream.step >= self._end):
                    raise StopIteration
                batch = next(self._stream)
            except StopIteration:
                self._finish()
                raise
            self.drawn += 1
            return batch

    def _check_position(self) -> None:
        """Raise if a later pass has begun, or if the position was set to another place in the meantime."""
        epoch, within, sought = self._dataset._position_set()
        known = [self._place, (self.epoch + 1, 0)]  # adapters seek to the start and to the end of a pass
        is_known = (epoch, within) in known if sought else epoch in (self.epoch, self._place[0])
        if self._is_taken or not is_known:
            raise RuntimeError(
                f"the position was set to epoch {epoch}, step {within} of it, while a pass of epoch {self.epoch} was "
                f"under way: call set_epoch, seek or load_state_dict before iter(loader)"
            )

    def take_stream(self, worker: int) -> PooledStream[T] | None:
        """End this pass, and return its stream to a later pass if that reads the same worker's part."""
        with self._lock.lock:
            self._is_taken = True
            stream, self._stream = self._stream, None
            return stream if worker == self._worker else None

    def state_dict(self) -> dict[str, Any]:
        """Return the position for torchdata's `StatefulDataLoader`: epoch, division of the source, pool's state."""
        with self._lock.lock:
            if not self._moves:
                self._begin()
            if self._is_taken:
                raise RuntimeError("this pass has ended and a later one continues its pool: save the state of that one")
            inner = None if self._stream is None else self._stream.state_dict()
            return {"epoch": self.epoch, "division": self._division(), "pass": inner}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Begin at a position that `state_dict` returned, possibly at the end of a pass."""
        if not isinstance(state_dict, Mapping) or not {"epoch", "division", "pass"} <= set(state_dict):
            raise ValueError(f"state should be what state_dict() of a pass returned, but got {state_dict!r}")
        dataset, saved = self._dataset, dict(state_dict["division"])
        # After `seek`, a pass may read the part of another worker.
        worker = checks.integer("consumer in state", saved.get("consumer"), minimum=0) // dataset.num_replicas
        here = self._division(worker)
        if different := differences(saved, here):
            raise ValueError(f"state should be of an equal division of the source, but {different}")
        epoch = checks.integer("epoch in state", state_dict["epoch"], minimum=0)
        inner = state_dict["pass"]
        own, place, moves = self._number(), dataset._epoch, dataset._moves
        _, end = self._bounds(epoch, worker, 0)
        stream = None if inner is None else self._new_stream(epoch, worker)
        if stream is not None:
            stream.load_state_dict(inner)
        is_over = stream is None or stream.is_over or (end is not None and stream.step >= end)
        is_set = moves > 1 and int(dataset._passes[own, 0]) != moves
        if is_set and place != (epoch + 1 if is_over and place != epoch else epoch):
            raise ValueError(
                f"set_epoch should be called with epoch {epoch} of the loader's state, whose rest the loader trains, "
                f"or with the next if it was over, but got {place}"
            )
        self.epoch, self._worker, self._end, self._stream, self._moves = epoch, worker, end, stream, moves
        self._place = (dataset._epoch, dataset._within)
        if is_set and place != epoch:
            self._is_before_place = True  # a loader that knows that this pass is over begins another one
            return
        dataset._passes[own, 0] = moves
        dataset._latest = self
        if is_over and not is_set:
            self._finish()

    def _begin(self) -> None:
        dataset = self._dataset
        own = self._number()
        epoch, within, moves = dataset._epoch, dataset._within, dataset._moves
        if dataset.num_workers and dataset._latest is not None:
            raise ValueError(
                "persistent_workers should be False for a PooledIterableDataset, since a worker that persists keeps "
                "its copy of the dataset and would not see a new position, but got True"
            )
        if int(dataset._passes[own, 0]) == moves:
            raise RuntimeError(
                "the position is unknown, since a pass was begun and not drawn to its end, or drawn by workers: call "
                "set_epoch(epoch) before each pass, or seek(step) with the steps trained"
            )
        if get_worker_info() is None:
            check_start(dataset._step_of(epoch, within), dataset.expected_start)
        counts, first = self._counts(within)
        worker = (first + own) % len(counts)
        start, end = self._bounds(epoch, worker, counts[worker])
        earlier, stream = dataset._latest, None
        if earlier is not None and dataset.options["repeat"]:
            stream = earlier.take_stream(worker)
        stream = self._stream_at(start, epoch, worker, stream)
        self._mark_as_begun(own, moves)
        dataset._latest = self
        self.epoch, self._worker, self._end, self._stream = epoch, worker, end, stream
        self.drawn, self._moves, self._place = within, moves, (epoch, within)

    def _finish(self) -> None:
        """End the pass. In the main process, move to the next epoch, unless the position was set in the meantime."""
        self._is_over = True
        dataset = self._dataset
        set_again = (dataset._epoch, dataset._latest) == (self.epoch, self) and dataset._position[0] >= 0
        if get_worker_info() is None and (dataset._moves == self._moves or set_again):
            dataset._is_set = False
            dataset._move(self.epoch + 1, 0)

    def _number(self) -> int:
        """Return the number of this worker, or 0 in the main process."""
        info, expected = get_worker_info(), self._dataset.num_workers
        found = 0 if info is None else info.num_workers
        if expected != found:
            raise ValueError(
                f"num_workers of PooledIterableDataset should be that of the DataLoader, since the batches depend on "
                f"it, but got {expected} where the loader has {found}"
            )
        return 0 if info is None else info.id

    def _counts(self, within: int) -> tuple[list[int], int]:
        """Return how many batches each worker gives before a step of the pass, and the worker that gives the next."""
        batches, workers = self._dataset.batches_of_workers, max(1, self._dataset.num_workers)
        if batches is not None:
            return taken_in_turn(batches, within)
        return [len(range(worker, within, workers)) for worker in range(workers)], within % workers

    def _bounds(self, epoch: int, worker: int, count: int) -> tuple[int, int | None]:
        """Return the step of a worker's stream at which its pass begins, after `count` batches, and where it ends."""
        dataset = self._dataset
        if dataset.batches_of_workers is None:
            return count, None
        quota = dataset.batches_of_workers[worker]
        before = epoch * quota if dataset.options["repeat"] else 0
        return before + count, before + quota

    def _stream_at(self, start: int, epoch: int, worker: int, stream: PooledStream[T] | None) -> PooledStream[T] | None:
        """Return the stream of a worker's part at step `start`: the earlier pass's `stream`, or else a new one."""
        dataset = self._dataset
        if stream is None or stream.step > start:
            if start and not dataset._seekable:
                raise ValueError(
                    f"source should be able to begin at a position for epoch {epoch} with repeat=True, but got a "
                    f"{type(dataset.source).__name__}; give a callable start -> iterable, or draw all passes in order "
                    f"with num_workers=0"
                )
            if self._has_nothing(worker):
                return None
            stream = self._new_stream(epoch, worker)
        if stream.step != start:
            if dataset._seekable:
                stream.seek(start)
            while stream.step < start:
                next(stream)
        return stream

    def _part(self, worker: int) -> tuple[int, int]:
        """Return a worker's number among all consumers, and the number of consumers."""
        dataset = self._dataset
        return dataset.rank + dataset.num_replicas * worker, len(dataset._passes) * dataset.num_replicas

    def _has_nothing(self, worker: int) -> bool:
        """Return whether a worker's part has no items; raise in that case if the source repeats."""
        dataset, (consumer, consumers) = self._dataset, self._part(worker)
        source = share_of_source(dataset.source, consumer, consumers)
        lengths = shares_of_length(dataset.source, consumers)
        if getattr(source, "shards", None) != [] and (lengths is None or lengths[consumer]):
            return False
        if dataset.options["repeat"]:
            raise ValueError(
                f"source should have at least one shard for each of the {consumers} workers of all processes with "
                f"repeat=True, but worker {consumer} got nothing; take fewer workers or more shards"
            )
        list(source(0))  # Shards raises here if a length of 0 is wrong
        return True

    def _new_stream(self, epoch: int, worker: int) -> PooledStream[T]:
        dataset, (consumer, consumers) = self._dataset, self._part(worker)
        if isinstance(dataset.source, Iterator) and not dataset.options["source_continues"]:
            if dataset._iterator_read:
                raise ValueError(
                    "source should be one that can begin again to be passed over more than once, but it is an iterator "
                    "that an earlier pass has read from; give an iterable or a callable start -> iterable"
                )
            dataset._iterator_read = True
        source = dataset.source if dataset.num_workers < 2 else undivided(dataset.source)
        seed = seed_of_part(dataset.seed, consumer)
        if not dataset.options["repeat"]:
            seed = seed_of_part(seed, epoch)
        return PooledStream(share_of_source(source, consumer, consumers), seed=seed, **dataset.options)

    def _mark_as_begun(self, own: int, moves: int) -> None:
        """Record that a pass has begun, and check that a callable source gives all workers the same items."""
        passes, source = self._dataset._passes, undivided(self._dataset.source)
        items: list[T] | None = None
        if len(passes) > 1 and isinstance(source, Undivided):
            items = list(islice(source(0), COMPARED))
            passes[own, 1] = checksum(items)
        # An earlier pass may begin late, hence `max`. Workers mark themselves before they compare, so that of any two
        # at least one sees the other.
        passes[own, 0] = max(moves, int(passes[own, 0]))
        if items is None:
            return
        if len({seen for latest, seen in passes.tolist() if latest == moves}) > 1:
            raise ValueError(
                "source should give the same items in the same order in every worker, but its first items differ "
                "between the workers of this pass: seed its shuffling, do not let it divide itself among workers, or "
                "give Shards"
            )
        if checksum(islice(source(1), COMPARED - 1)) != checksum(items[1:]):
            raise ValueError(
                "source(start) should begin at item number start of the same items, but source(1) does not continue "
                "the items of source(0)"
            )

    def _division(self, worker: int | None = None) -> dict[str, int]:
        dataset = self._dataset
        return {
            "num_replicas": dataset.num_replicas,
            "rank": dataset.rank,
            "num_workers": len(dataset._passes),
            "consumer": dataset.rank + dataset.num_replicas * (self._worker if worker is None else worker),
            "steps_per_epoch": (dataset.steps_per_epoch or 0) if dataset.options["repeat"] else 0,
        }


class StatefulStream(IterableDataset[list[T]], Generic[T]):
    """A `PooledIterableDataset` for torchdata's `StatefulDataLoader`, which saves the state of the pass.

    `PooledIterableDataset.stateful` returns it. The dataset itself has no state, only its passes have.
    """

    def __init__(self, dataset: PooledIterableDataset[T]) -> None:
        self.dataset = dataset

    def __iter__(self) -> StreamPass[T]:
        return StreamPass(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass begin at the start of `epoch`; see `PooledIterableDataset.set_epoch`."""
        self.dataset.set_epoch(epoch)


class Undivided(Generic[T]):
    """Opens a source or a shard, and raises if that divides itself among a loader's workers."""

    def __init__(self, opens: Callable[[Any], Iterable[T]]) -> None:
        self._opens = opens
        self.length = getattr(opens, "length", None)

    def __call__(self, at: Any) -> Iterable[T]:
        """Return the items of shard `at`, or the source's items from position `at` on."""
        opened = self._opens(at)
        if isinstance(opened, IterableDataset):
            raise ValueError(
                f"source should not return a torch IterableDataset in workers, since those divide themselves among the "
                f"workers, and items would be lost, but got a {type(opened).__name__}; return a generator over all "
                f"items of the shard (dataset.iter(batch_size) of Hugging Face datasets does not divide itself)"
            )
        return opened


def undivided(source: Any) -> Any:
    """Return `source` with a check at each opening that it does not divide itself."""
    if isinstance(source, Shards):
        return Shards(source.shards, Undivided(source.open_shard), lengths=source.lengths)
    return Undivided(source) if callable(source) else source
