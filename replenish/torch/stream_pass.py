"""One pass over a pooled stream: that of one consumer, a worker of a process, resumable to the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch.utils.data import get_worker_info
from torch.utils.data._utils import worker as torch_worker

from replenish import checks
from replenish.stream.pooled import PooledStream
from replenish.torch.loaders import check_trainer_goes_on

if TYPE_CHECKING:
    from replenish.torch.stream import PooledIterableDataset

T = TypeVar("T")


class StreamPass(Iterator[list[T]], Generic[T]):
    """One pass of one consumer, with a state of its own for torchdata's StatefulDataLoader."""

    def __init__(self, dataset: PooledIterableDataset[T]) -> None:
        info = get_worker_info()
        self._dataset = dataset
        self._workers, self._worker = (1, 0) if info is None else (info.num_workers, info.id)
        self._consumers = dataset.num_replicas * self._workers
        self._consumer = dataset.rank + dataset.num_replicas * self._worker
        self._stream: PooledStream[T] | None = None
        self._anew = True
        restored, dataset._restored = dataset._restored, None
        self._begin(dataset.epoch if restored is None else restored)

    def _begin(self, epoch: int) -> None:
        self._epoch, self._moves = epoch, int(self._dataset._set[1])
        self._start, self._end = self._dataset._bounds(self._consumer, self._consumers, epoch)
        self._begun = self._ended = False

    def _make(self) -> None:
        self._stream, self._anew = self._dataset._stream(self._consumer, self._consumers, self._epoch)
        self._begun = True

    def _make_at_the_start(self) -> None:
        """Make the stream, if it is not made: not before, since a loader may load a state into a new pass."""
        if not self._begun:
            if self._dataset.steps_per_epoch is not None:
                check_trainer_goes_on(self._epoch, self._dataset.steps_per_epoch)
            self._make()
            self._dataset._began[self._worker] = self._moves
            if self._stream is not None and self._stream.step != self._start:
                self._go_to_the_start(self._stream)

    def _go_to_the_start(self, stream: PooledStream[T]) -> None:
        """Seek, or draw what comes before once more: a worker that does not persist begins every epoch anew."""
        if stream.seekable or isinstance(self._dataset.source, Iterator) or stream.step > self._start:
            stream.seek(self._start)
        while stream.step < self._start:
            next(stream)

    def __next__(self) -> list[T]:
        # The source must not divide itself among workers, or the rest of its part would be lost here.
        info, torch_worker._worker_info = torch_worker._worker_info, None
        try:
            return self._next()
        except StopIteration:
            self._take_note_of_the_end()
            raise
        finally:
            torch_worker._worker_info = info

    def _next(self) -> list[T]:
        self._make_at_the_start()
        if self._stream is None:
            raise StopIteration
        if self._end is not None and self._stream.step >= self._end:
            if self._dataset.options["repeat"]:
                self._dataset._kept = ((self._consumer, self._consumers), self._stream)
            raise StopIteration
        if self._anew:
            self._dataset._check_unread()
            self._anew = False
        batch = next(self._stream)
        if self._end is not None and self._stream.step >= self._end:
            self._take_note_of_the_end()  # frameworks that know the length never ask for more
        return batch

    def _take_note_of_the_end(self) -> None:
        """Let the next pass be the next epoch, once all workers have come to the end of this one."""
        if not self._ended and int(self._dataset._set[1]) == self._moves:
            self._ended = True
            self._dataset._ended[0] = self._workers
            self._dataset._ended[1 + self._worker] = self._epoch + 1

    def state_dict(self) -> dict[str, Any]:
        """Return where this pass stands, its epoch, and how the source is divided."""
        self._make_at_the_start()
        if self._stream is not None and self._end is not None and self._stream.step > self._end:
            raise RuntimeError("this pass has ended, and a later one has gone on with its pool: ask that for its state")
        inner = None if self._stream is None else self._stream.state_dict()
        return {"epoch": self._epoch, "division": self._division(), "pass": inner}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to where `state_dict` was taken, possibly the end of a pass."""
        if not isinstance(state_dict, Mapping) or not {"epoch", "division", "pass"} <= set(state_dict):
            raise ValueError(f"state should be what state_dict() of a pass returned, but got {state_dict!r}")
        saved, here = state_dict["division"], self._division()
        differing = [
            f"{name} is {saved.get(name, 'missing')!r} in the state but {value!r} here"
            for name, value in here.items()
            if saved.get(name) != value
        ]
        if differing:
            raise ValueError("state should be of an equal division of the source, but " + ", ".join(differing))
        epoch, before = checks.integer("epoch in state", state_dict["epoch"], minimum=0), dict(vars(self))
        self._check_told(epoch)
        try:
            self._begin(epoch)
            self._make()
            if self._stream is not None:
                self._stream.load_state_dict(state_dict["pass"])
                self._anew &= not self._stream.source_continues
        except (TypeError, ValueError):
            vars(self).update(before)  # a refused state changes nothing
            raise
        if self._is_over(state_dict["pass"]):
            self._take_note_of_the_end()

    def _check_told(self, epoch: int) -> None:
        """Refuse a state of another epoch than `set_epoch` has named for this pass: a loader goes on with its state.

        The next epoch is right too, where the state is of the end of one: a loader begins that pass without a state.
        """
        moves, told = int(self._dataset._set[1]), int(self._dataset._set[2])
        if moves > int(self._dataset._began[self._worker]) and told not in (epoch, epoch + 1):
            raise ValueError(
                f"set_epoch should name the epoch {epoch} of the loader's state, with the rest of which the loader "
                f"goes on, or the next if it was over, but got {told}; go elsewhere after that pass, or load no state"
            )

    def _is_over(self, state: Mapping[str, Any] | None) -> bool:
        """Whether a state is of the end of a pass, though nobody has asked for more."""
        if state is None:
            return True
        if self._end is not None:
            return bool(state["step"] >= self._end)
        length = state.get("length", 0)
        return not self._dataset.options["repeat"] and 0 < length <= state["step"] * state["batch_size"]

    def _division(self) -> dict[str, int]:
        return {
            "num_replicas": self._dataset.num_replicas,
            "rank": self._dataset.rank,
            "num_workers": self._workers,
            "consumer": self._consumer,
            "steps_per_epoch": self._dataset.steps_per_epoch or 0,
        }
