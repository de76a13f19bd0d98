"""`PooledStream`: sequenced replacement over a source that is read in order and need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np

from replenish import checks, state
from replenish.draws import STREAM, DistinctDraws, Int64Array
from replenish.locks import ForkSafeLock
from replenish.stream.sources import Opener, Reader, Source, checksum
from replenish.stream.window import MAX_POSITION, drain_order, full_steps, gather, positions_before

T = TypeVar("T")

# Slots are converted to lists in groups of this size. Larger groups do not fit the cache and take twice as long.
SLOTS_PER_LIST = 4096

# How many of the pool's items the checksum in a state covers.
CHECKED_ITEMS = 8

# The fields of the items in a state.
ITEM_FIELDS = {"held", "incoming", "filled", "draining", "offset"}


class PooledStream(Iterator[list[T]], Generic[T]):
    """Batches drawn from a bounded pool over a source: SRS for data that do not fit in memory or have no end.

    The pool starts with the first `pool_size` items. Every step draws `batch_size` distinct slots by the draws of
    `SequencedReplacement`, and refills them with the next items of the source (the paper's section 2, with the source
    as the sequence). So over a source of N items that repeats, a pool of N gives exactly the batches of
    `SequencedReplacement(N, batch_size, sequence="identity")`.

    Items are read when a batch needs them, never ahead: the first batch reads `pool_size` items, every further one
    `batch_size`. Memory holds the pool, a batch and a block of slot numbers, however long the stream is.

    With `repeat=False` every item comes exactly once, in ceil(N / batch_size) batches. Batches are drawn from the pool
    until the source has ended and cannot refill all slots. The items left in the slots then come in a random order,
    which depends only on the seed and N, and the last batch may be short. So a source shorter than the pool is
    shuffled as a whole. With `repeat=True` such a source fills the pool with several copies.

    Args:
        source: An iterable of items, or a callable `start -> iterable` that begins at item number `start` of the
            source and gives nothing at its end (a *seekable* source; lists, ranges, arrays, `Shards` and `TextLines`
            are also seekable). A callable may have its number of items in an attribute `length`.
        batch_size: The number of items that a step draws: B.
        pool_size: The number of slots, at least `batch_size`: M. A larger pool mixes better:
            `replenish.diagnostics.measure_mixing` compares sizes.
        seed: Chooses the draws; in [0, 2**63).
        repeat: Whether the source begins again at its end (the paper's cyclic sequence).
        store_items: Whether the state holds the pool's items. A source that cannot seek needs this to be resumed. A
            seekable source is then not read again, but the state is large.
        source_continues: Whether, after `load_state_dict`, a source that cannot seek continues where the saved stream
            stopped reading, as a live one does. Otherwise it begins anew, and the items read before are skipped.
        seek_cost: The cost of a call of a seekable source, in items. When a state is loaded, shorter gaps between the
            items of the pool are read, and longer ones are jumped over.

    Example:
        >>> stream = PooledStream(range(5), batch_size=2, pool_size=5)
        >>> [next(stream) for _ in range(3)]
        [[0, 3], [1, 0], [2, 4]]
        >>> sorted(item for batch in PooledStream("a b c d e".split(), batch_size=2, pool_size=3, repeat=False)
        ...        for item in batch)
        ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(
        self,
        source: Source[T],
        *,
        batch_size: int,
        pool_size: int,
        seed: int = 0,
        repeat: bool = True,
        store_items: bool = False,
        source_continues: bool = False,
        seek_cost: int = 1024,
    ) -> None:
        self._opener = Opener(source)
        self.batch_size = checks.integer("batch_size", batch_size, minimum=1)
        self.pool_size = checks.integer("pool_size", pool_size, minimum=1, maximum=2**40)
        if self.batch_size > self.pool_size:
            raise ValueError(
                f"pool_size should be at least batch_size, since a batch is drawn from distinct slots, but got "
                f"pool_size={self.pool_size} and batch_size={self.batch_size}; take a larger pool_size or a smaller "
                f"batch_size"
            )
        self.seed = checks.seed(seed)
        self.repeat = checks.boolean("repeat", repeat)
        self.store_items = checks.boolean("store_items", store_items)
        self.source_continues = checks.boolean("source_continues", source_continues)
        if self.source_continues and self._opener.seekable:
            raise ValueError(
                f"source_continues should be False for a source that can begin at any position, but got True with a "
                f"{type(source).__name__}"
            )
        self.seek_cost = checks.integer("seek_cost", seek_cost, minimum=1)
        if self._opener.length == 0:
            raise ValueError("source should give at least one item, but its length is 0")
        self._lock = ForkSafeLock()  # threads may share a stream; each batch goes to one of them
        self._reader = Reader(self._opener, self.repeat)
        self._draws = DistinctDraws(self.pool_size, self.batch_size, self.seed)
        self._rows: list[list[int]] = []  # the slots of some consecutive steps
        self._first_row = 0  # the first of these steps
        self._block: tuple[int, Int64Array] | None = None  # the number of the block that has them, and the block
        self._begin_at(0)

    def _begin_at(self, step: int, items: Mapping[str, Any] | None = None) -> None:
        """Go to `step`; the pool is found when the next batch is drawn."""
        self._step = step
        self._pool: list[T] | None = None
        self._drawn: list[int] = []  # the slots that the last step drew, to be filled before the next
        self._incoming: list[T] = []  # items that were read and are not yet in a slot
        self._filled_for = -1  # the step for which all slots are full
        self._rest: list[T] | None = None  # the items left after the source has ended, the next one last
        self._items = items  # the items in the state that was loaded
        self._checksum: int | None = None  # the checksum in that state, to compare with the items that are read again
        self._probe = False  # whether the source may have ended before `step`

    @property
    def step(self) -> int:
        """The step of the next batch: the number of batches drawn."""
        return self._step

    @property
    def seekable(self) -> bool:
        """Whether the source can begin at any position."""
        return self._opener.seekable

    @property
    def is_over(self) -> bool:
        """Whether every item was drawn. It can be False at the end of a source of unknown length."""
        length = self._reader.length
        return not self.repeat and length is not None and self._step * self.batch_size >= length

    def __next__(self) -> list[T]:
        with self._lock.lock:
            return self._draw()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved, _lock=ForkSafeLock())

    def _draw(self) -> list[T]:
        if self._pool is None:
            self._restore()
            assert self._pool is not None
        step, size = self._step, self.batch_size
        if self._rest is None and self._filled_for != step and not self._fill(step):
            self._drain(step)
        if self._rest is not None:
            if not self._rest:
                raise StopIteration
            batch = self._rest[: -size - 1 : -1]
            del self._rest[-size:]
        else:
            row = self._row(step)
            # itemgetter is the fastest way to take many items of a list. Given one index, it does not return a tuple.
            batch = list(itemgetter(*row)(self._pool)) if size > 1 else [self._pool[row[0]]]
            self._drawn = row
        self._step = step + 1
        return batch

    def _fill(self, step: int) -> bool:
        """Fill the slots that the last step drew, or all slots at the start. Return whether there were enough items."""
        pool, incoming = self._pool, self._incoming
        assert pool is not None
        wanted = self.batch_size if step else self.pool_size
        self._reader.read(wanted - len(incoming), incoming)
        if len(incoming) < wanted:
            return False
        if step:
            for slot, item in zip(self._drawn, incoming, strict=True):
                pool[slot] = item
        else:
            pool[:] = incoming
        self._incoming, self._filled_for = [], step
        return True

    def _drain(self, step: int) -> None:
        """Order the items left in the slots for the last batches, since the source has ended."""
        pool, incoming, length = self._pool, self._incoming, self._reader.length
        assert pool is not None
        assert length is not None
        if step:
            for slot, item in zip(self._drawn, incoming, strict=False):
                pool[slot] = item
            empty = set(self._drawn[len(incoming) :])
            left = [item for slot, item in enumerate(pool) if slot not in empty]
        else:
            left = incoming
        self._rest = [left[place] for place in reversed(drain_order(self.seed, length, len(left)))]
        self._pool, self._incoming = [], []

    def _row(self, step: int) -> list[int]:
        """Return the slots that `step` draws."""
        place = step - self._first_row
        if not 0 <= place < len(self._rows):
            index, within = divmod(step, self._draws.steps_per_block)
            if self._block is None or self._block[0] != index:
                self._block = (index, self._draws.block(index))
            count = max(1, SLOTS_PER_LIST // self.batch_size)
            self._first_row, place = step, 0
            self._rows = self._block[1][within : within + count].tolist()
        return self._rows[place]

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that, with the source, identify the stream."""
        return {
            "order": type(self).__name__,
            "stream": STREAM,
            "batch_size": self.batch_size,
            "pool_size": self.pool_size,
            "seed": self.seed,
            "repeat": int(self.repeat),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the position before the next batch.

        For a seekable source it is plain ints and strings, a few hundred bytes: the step, the configuration and the
        length of the source if it is known (0 if not). With `store_items` it also holds the pool's items.

        Raises:
            ValueError: The source cannot seek and `store_items` is False, so the stream could not be resumed.
        """
        if not self.store_items and not self.seekable:
            raise ValueError(
                f"store_items should be True to save the state of a stream whose source cannot begin at a position, "
                f"but it is False and the source is a {type(self._opener.source).__name__}; set store_items=True, or "
                f"give a callable start -> iterable"
            )
        with self._lock.lock:
            saved: dict[str, Any] = dict(state.save(self, self._step))
            saved["length"] = self._reader.length or 0
            if self._probe:
                saved["sought"] = 1  # nothing was read since `seek`, so the source may have ended before
            if self._items is not None and self.store_items:
                saved["items"] = self._items
            elif self.store_items and not (self.seekable and self._pool is None):  # after `seek` there is no pool yet
                saved["items"] = self._items_held()
            seen = self._checksum if self._pool is None else self._checksum_of_pool()
            if seen is not None and "items" not in saved:
                saved["checksum"] = seen
            return saved

    def _checksum_of_pool(self) -> int | None:
        """Return a checksum of items that a resumed stream reads again, or None if there are none."""
        drawn = set(self._drawn)
        left = (item for slot, item in enumerate(self._pool or ()) if slot not in drawn)
        items = list(islice(left, CHECKED_ITEMS) if self._rest is None else self._rest[-CHECKED_ITEMS:])
        return checksum(items) if items else None

    def _items_held(self) -> dict[str, Any]:
        held: list[Any] = list(self._pool or []) if self._rest is None else list(self._rest)
        filled = self._filled_for == self._step
        if held and self._rest is None and not filled:
            for slot in self._drawn:
                held[slot] = None  # drawn, and not yet refilled
        return {
            "held": held,
            "incoming": list(self._incoming),
            "filled": int(filled),
            "draining": int(self._rest is not None),
            "offset": self._reader.offset,
            "head": list(self._reader.head),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go to a position that `state_dict` returned.

        Nothing is read before the next batch. A seekable source is then read from the oldest item in the pool, about
        M (ln M + 1) items back but at most a whole pass. Gaps of `seek_cost` items or more are jumped over, so it
        reads about M ln(seek_cost) items with M / seek_cost jumps. For a source that cannot seek, the pool comes from
        the state, and the items of the pass that were read before are skipped.

        Raises:
            ValueError: The state belongs to another stream. The message names the differences.
        """
        step = state.load(self, state_dict)
        length = checks.integer("length in state", state_dict.get("length", 0), minimum=0) or None
        if length is not None and self._opener.length not in (None, length):
            raise ValueError(
                f"state should be of an equal source, but length is {length} in the state but {self._opener.length} "
                f"here"
            )
        items = state_dict.get("items")
        if items is None and not self.seekable:
            raise ValueError(
                f"state should hold the pool's items, saved with store_items=True, for a source that cannot begin at a "
                f"position, but it has none and the source is a {type(self._opener.source).__name__}"
            )
        if items is not None and not (isinstance(items, Mapping) and set(items) >= ITEM_FIELDS):
            raise ValueError(f"items in state should be what state_dict() put there, but got a {type(items).__name__}")
        self._check_position(step)
        seen = state_dict.get("checksum")
        with self._lock.lock:
            self._reader.length = length or self._opener.length
            self._begin_at(step, items)
            self._checksum = None if seen is None or items is not None else int(seen)
            self._probe = bool(state_dict.get("sought")) and self._reader.length is None

    def seek(self, step: int) -> None:
        """Go to `step` of a seekable source, without drawing the batches before.

        It costs as much as loading a state. If the length of the source is not known and `step` is beyond its end, it
        also costs a pass over the source to count its items.
        """
        if not self.seekable:
            raise ValueError(
                f"source should be able to begin at a position for seek(), but got a "
                f"{type(self._opener.source).__name__}; give a callable start -> iterable"
            )
        step = checks.step(step)
        self._check_position(step)
        with self._lock.lock:
            self._begin_at(step)
            self._probe = self._reader.length is None

    def _check_position(self, step: int) -> None:
        last = (MAX_POSITION - self.pool_size) // self.batch_size - 1
        checks.integer("step", step, minimum=0, maximum=last)

    def _restore(self) -> None:
        """Find the pool for the current step, and compare it with the checksum of the state."""
        seen, self._checksum = self._checksum, None
        try:
            self._find_pool()
            # If the drain begins at this step, the checksum is of the full pool, which no longer exists here.
            length = self._reader.length or 0
            drains = self._rest is not None and self._step == full_steps(length, self.pool_size, self.batch_size)
            if not drains and seen not in (None, self._checksum_of_pool()):
                self._pool = self._rest = None
                raise ValueError(
                    "source should give the items of the run that was saved, but those of its pool are others when "
                    "they are read again; give the same items in the same order in every run (seed what shuffles "
                    "them), or save them with store_items=True"
                )
        except BaseException:
            self._checksum = seen
            raise

    def _find_pool(self) -> None:
        self._drawn = self._row(self._step - 1) if self._step else []
        if self._items is not None:
            items, held = self._items, list(self._items["held"])
            if items["draining"]:
                self._rest = held
            else:
                self._reader.go_to(items["offset"], skip=not self.source_continues, head=items.get("head"))
            self._incoming = list(items["incoming"])
            self._filled_for = self._step if items["filled"] else -1
            self._pool, self._items = held, None
            return
        read = self.pool_size + (self._step - 1) * self.batch_size if self._step else 0
        if self._probe and read:
            self._look_for_the_end(read)
        self._probe = False
        length = self._reader.length
        full = None if self.repeat or length is None else full_steps(length, self.pool_size, self.batch_size)
        if self._step == 0:  # also for a source shorter than the pool, since reading it checks its length
            self._reader.go_to(0)
            self._pool = []
        elif full is not None and self._step >= full and length is not None:
            self._restore_draining(full, length)
        else:
            positions = positions_before(self._draws, self._step)
            positions[positions >= read] = -1  # slots of the last step are not yet refilled
            pool = self._read_again(positions)
            self._reader.go_to(read if length is None else read % length if self.repeat else read)
            self._pool = pool

    def _restore_draining(self, full: int, length: int) -> None:
        positions = positions_before(self._draws, full) if full else np.arange(self.pool_size)
        left = positions[positions < length]
        left = left[drain_order(self.seed, length, len(left))][(self._step - full) * self.batch_size :]
        rest = self._read_again(left[::-1])
        self._reader.go_to(length)
        self._reader.ended = True
        self._rest, self._pool = rest, []

    def _read_again(self, positions: Int64Array) -> list[T]:
        """Return the items at `positions`, and None for negative ones."""
        length = self._reader.length
        if self.repeat and length is not None:
            positions = np.where(positions < 0, -1, positions % length)
        offsets = np.unique(positions[positions >= 0]).tolist()
        items: dict[int, Any] = gather(self._opener.open, offsets, self.seek_cost)
        items[-1] = None
        return [items[position] for position in positions.tolist()]

    def _look_for_the_end(self, read: int) -> None:
        """Count the source's items if it has ended before position `read`."""
        for _ in self._opener.open(read - 1):
            return
        self._reader.length = sum(1 for _ in self._opener.open(0))
        if self._reader.length == 0:
            raise ValueError("source should give at least one item, but it gave none")
