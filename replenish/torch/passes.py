"""One pass over a sampler: from its position to the end of an effective epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from replenish import checks
from replenish.torch.loaders import LoaderIterator

Item = TypeVar("Item", int, list[int])


class Pass(Iterator[Item], Generic[Item]):
    """The items of a sampler, batches or indices, from `start` to `end`, both counted in items from the run's start.

    It has a state of its own for torchdata's StatefulDataLoader, which restores the sampler *and* the
    iterator: a pass restored at its end is empty, while a sampler that is put there begins an epoch.

    Attributes:
        drawn: How many items were drawn.
        moves: How often the sampler had been moved when the pass began.
        saved: Whether a state was taken from within the pass.
        settled: Whether the sampler has taken note that the pass is over.
        count_is_lost: Whether it is only known what was drawn, since the loader has begun to count anew.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._items: Iterator[Item] | None = None
        self._restored: tuple[int, int] | None = None
        self.loader: LoaderIterator | None = None
        self.start = self.end = self.drawn = self.moves = 0
        self.exhausted = self.saved = self.settled = self.count_is_lost = False
        self._noted: int | None = None

    def __next__(self) -> Item:
        if self._items is None:
            self._items = self._sampler._begin(self, self._restored)
        elif self._sampler._latest is not self:
            self._sampler._goes_on(self)
        try:
            item = next(self._items)
        except StopIteration:
            self.exhausted = True
            raise
        self.drawn += 1
        return item

    def begin(self, loader: LoaderIterator | None, start: int, end: int, moves: int) -> None:
        """Take note of where it begins, and of who draws."""
        self.loader, self.start, self.end, self.moves = loader, start, end, moves

    def handed_on(self) -> int | None:
        """Return how many items the loop was given, or None if only the loop knows."""
        if self.loader is None:
            return self.drawn if self._noted is None else self._noted
        if self.loader.stateful and (self._restored is not None or not self.loader.has_workers):
            return self.drawn
        handed = self.loader.handed_on()
        if handed is None:
            return None if self.loader.has_workers else self.drawn
        return min(self.drawn, handed)

    def note(self) -> None:
        """Keep the count of a loader's iterator that persists and is about to begin another pass."""
        if self.loader is not None and self.loader.draws_from(self):
            self._noted = self.loader.handed_on(all_given=True)

    def left_for(self, loader: LoaderIterator | None) -> None:
        """Count by what was noted, or else drawn, if `loader` is the same iterator: it has begun to count anew."""
        if self.loader is not None and self.loader.is_same_as(loader):
            self.loader, self.count_is_lost = None, self._noted is None

    def finished(self) -> bool:
        """Whether all its items were handed on; if they make one batch, the loop must have asked for more."""
        handed, total = self.handed_on(), self.end - self.start
        if handed is None or total <= self._sampler._items_per_step:
            return self.exhausted and handed in (None, total)
        return handed >= total

    def _place(self) -> tuple[int, int]:
        if self._items is not None:
            return self.start + self.drawn, self.end
        return self._restored or self._sampler._bounds()

    def state_dict(self) -> dict[str, int]:
        """Return where this pass stands and ends."""
        (step, offset), (end, _) = (divmod(place, self._sampler._items_per_step) for place in self._place())
        saved = {"step": step, "end": end}
        return saved if self._sampler._items_per_step == 1 else {**saved, "offset": offset}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go to where `state_dict` was taken, possibly the end."""
        size = self._sampler._items_per_step
        offset = checks.integer("offset in state", state_dict.get("offset", 0), minimum=0, maximum=size - 1)
        step = checks.step(state_dict.get("step"), "step in state")
        end = checks.integer("end in state", state_dict.get("end"), minimum=step)
        self._restored, self._items = (step * size + offset, end * size), None
