"""The base of the library's orders: a cursor finds batches, and everything else follows from the cursor."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import STREAM, Int64Array
from replenish.locks import ForkSafeLock, kept_property
from replenish.notebook import html_table
from replenish.orders.visits import Visits, add_visits

if TYPE_CHECKING:
    from replenish.orders.rebatched import Rebatched

# The arguments that come first in every config and repr.
FIRST_ARGUMENTS = ("num_samples", "batch_size", "seed", "drop_last")


class Cursor(ABC):
    """A place in an order's stream, with what is costly to find again, such as a pool or a permutation.

    Any step may be requested at any time; consecutive steps are cheap. Only one thread at a time may use a cursor. A
    cursor changes what it keeps in single assignments, so that it stays valid wherever an interrupt ends a call.
    """

    _kept: tuple[int, Int64Array] | None = None

    def rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first, rows): the batches of the steps first, first + 1, ..., which include `step`.

        The rows belong to the cursor: read or copy them, but do not write to them.
        """
        if self._kept is None or not 0 <= step - self._kept[0] < len(self._kept[1]):
            self._kept = None  # an interrupt must not leave old rows in a moved cursor
            self._kept = self._rows_at(step)
        return self._kept

    @abstractmethod
    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Find what `rows_at` returns."""


class CursorOrder(ABC):
    """The base of the library's orders; a subclass defines how a cursor finds its rows.

    Every argument is an attribute of the same name. The config, equality, the hash and the pickle depend only on the
    arguments. `batch` keeps a cursor between calls, behind a lock. Each `batches` iterator has its own cursor.
    """

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0) -> None:
        self.num_samples = checks.integer("num_samples", num_samples, minimum=1, maximum=2**62)
        self.batch_size = checks.integer("batch_size", batch_size, minimum=1, maximum=2**40)
        self.seed = checks.seed(seed)
        self._lock = ForkSafeLock()
        self._cursor_of_batch: Cursor | None = None
        self._counted_visits: Visits | None = None

    def _refuse_batches_larger_than_the_data(self, why: str) -> None:
        if self.batch_size > self.num_samples:
            raise ValueError(
                f"batch_size should be at most num_samples{why}, but got batch_size={self.batch_size} and "
                f"num_samples={self.num_samples}"
            )

    @abstractmethod
    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that make an equal order."""
        return {name: getattr(self, name) for name in _argument_names(type(self))}

    @kept_property
    def _named_arguments(self) -> dict[str, Any]:
        """The arguments, with the SHA-256 of an array in place of the array."""
        return {
            name: digest(value) if isinstance(value, np.ndarray) else value for name, value in self._arguments().items()
        }

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch: num_samples / batch_size, rounded up."""
        return -(-self.num_samples // self.batch_size)

    def effective_epoch(self, step: int) -> float:
        """Return step / steps_per_epoch, the paper's effective epoch (section 3.1)."""
        return checks.step(step) / self.steps_per_epoch

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order, and so its whole stream.

        An array is replaced by its SHA-256.
        """
        named = {
            name: int(value) if isinstance(value, bool) else value for name, value in self._named_arguments.items()
        }
        return {"order": type(self).__name__, "stream": STREAM, **named}

    def _same_before(self, config: Mapping[str, Any], step: int) -> bool:
        """Return whether the order that `config` names has the same batches as this one in all steps before `step`.

        Then a state saved with one order is valid in the other: for example after a skipped range, a new batch size or
        new shares of a mixture, if these take effect only from `step` on.
        """
        return all(config.get(name) == value for name, value in self.config().items())

    def batch(self, step: int) -> Int64Array:
        """Return the indices of `step`, as `batches()` yields them. Steps may come in any order.

        Neighbouring steps are cheap. A distant step costs as much as starting `batches` there.
        """
        step = checks.step(step)
        with self._lock.lock:
            if self._cursor_of_batch is None:
                self._cursor_of_batch = self.cursor()
            first, rows = self._cursor_of_batch.rows_at(step)
            return rows[step - first].copy()

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Int64Array]:
        """Yield the indices of steps start, start + 1, ..., stop - 1, or without end."""
        return _rows_of(self.blocks(start, stop))  # a wrong argument raises here, not at the first batch

    def visits(self, step: int) -> Int64Array:
        """Return how often the sample at each place of the batch of `step` was drawn before, exactly.

        A sample that the batch holds twice is visited twice. Consecutive steps cost O(batch_size) each. Any other step
        costs as much as `counts_before`, or nothing if every epoch has every sample once.
        """
        with self._lock.lock:
            if self._counted_visits is None:
                self._counted_visits = Visits(self)
        return self._counted_visits.at(step)

    def draws_before(self, step: int) -> int:
        """Return how many samples the steps before `step` draw."""
        return checks.step(step) * self.batch_size

    def _step_of_draw(self, draw: int) -> tuple[int, int]:
        """Return (step, place) of draw number `draw`."""
        epoch, rest = divmod(draw, self.steps_per_epoch * self.batch_size)
        step, place = divmod(rest, self.batch_size)
        return epoch % 2**62 * self.steps_per_epoch + step, place

    def samples(self, start: int, stop: int) -> Int64Array:
        """Return draws `start` to `stop` (not included) of the order read as one sequence, without batches.

        `draws_before(step)` is the number of the first draw of a step.

        Example:
            >>> from replenish import RandomReshuffling
            >>> order = RandomReshuffling(num_samples=10, batch_size=4)
            >>> order.samples(0, 10).tolist() == [index for batch in order.batches(0, 3) for index in batch.tolist()]
            True
        """
        self.draws_before(0)  # raises if batches have random sizes
        start = checks.integer("start", start, minimum=0)
        stop = checks.integer("stop", stop, minimum=start)
        return SampleReader(self).read(start, stop - start)

    # Why another batch size would break what the order guarantees for each batch, or None.
    _shaped_by_its_batches: ClassVar[str | None] = None

    def rebatched(self, batch_size: int, at_step: int) -> Rebatched:
        """Return this order, read with another batch size from step `at_step` on.

        The steps before `at_step` stay as they are. Later batches continue the same sequence of samples, so that none
        is lost or repeated. They are all full, so a batch may hold the end of one epoch and the start of the next.

        Raises:
            ValueError: Another batch size would break what the order guarantees for each batch.
        """
        from replenish.orders.rebatched import Rebatched

        return Rebatched(self, batch_size, at_step)

    def _rebatched_cursor(self, batch_size: int, at_step: int) -> Cursor:
        """Return a cursor for the steps from `at_step` on, with batches of another size."""
        from replenish.orders.rebatched import NewBatches

        return NewBatches(self, batch_size, at_step)

    @property
    def has_every_sample_once(self) -> bool:
        """Whether every epoch has every sample once."""
        return False

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`; full epochs are counted, not drawn."""
        epochs = checks.step(step) // self.steps_per_epoch if self.has_every_sample_once else 0
        counts = np.full(self.num_samples, epochs)
        add_visits(counts, self, epochs * self.steps_per_epoch, step)
        return counts

    def blocks(self, start: int = 0, stop: int | None = None, cursor: Cursor | None = None) -> Iterator[Int64Array]:
        """Yield what `batches` yields, many steps at a time: arrays with one step per row.

        Args:
            start: The first step.
            stop: The step to end before, or None for no end.
            cursor: A cursor that `cursor()` returned. If an earlier iterator used it up to `start`, nothing has to
                be searched. Do not write to its rows.
        """
        start = checks.step(start, "start")
        if stop is not None:
            stop = checks.step(stop, "stop")
        return self._blocks(start, stop, cursor)

    def _blocks(self, start: int, stop: int | None, cursor: Cursor | None) -> Iterator[Int64Array]:
        if cursor is None:
            cursor = self.cursor()
        while stop is None or start < stop:
            first, rows = cursor.rows_at(start)
            end = first + len(rows) if stop is None else min(stop, first + len(rows))
            yield rows[start - first : end - first]
            start = end

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.config() == other.config()

    def __hash__(self) -> int:
        return hash(tuple(self.config().items()))

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return functools.partial(type(self), **self._arguments()), ()

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._named_arguments.items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), str(value)) for name, value in self.config().items() if name != "order"]
        first = self.batch(0)
        shown = ", ".join(map(str, first[:10].tolist())) + (", ..." if len(first) > 10 else "")
        rows += [("steps of an effective epoch", f"{self.steps_per_epoch:,}"), ("first batch", shown)]
        return html_table(type(self).__name__, rows)


def _rows_of(blocks: Iterator[Int64Array]) -> Iterator[Int64Array]:
    # A generator raises an error in a second thread. `itertools.chain` over a generator crashed the interpreter.
    for block in blocks:
        yield from block


@functools.cache
def _argument_names(order_class: type[CursorOrder]) -> list[str]:
    names = inspect.signature(order_class).parameters
    return sorted(names, key=lambda name: [*FIRST_ARGUMENTS, name].index(name))


class SampleReader:
    """Reads an order as one sequence of samples, by draw number; a read that continues the last one is cheap.

    Draws are counted over all steps: draw 0 is the first sample of step 0. After 2**62 epochs, which no run reaches,
    the draws start again, since keys have 64 bits.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(SampleReader(order).read(5, 5).tolist())
        [0, 1, 2, 3, 4]
    """

    def __init__(self, order: CursorOrder) -> None:
        self._order = order
        self._cursor = order.cursor()

    def read(self, start: int, count: int) -> Int64Array:
        """Return draws start ... start + count - 1."""
        pieces, stop = [np.empty(0, dtype=np.int64)], start + count
        while start < stop:
            step, place = self._order._step_of_draw(start)
            first, rows = self._cursor.rows_at(step)
            piece = rows[step - first :].ravel()[place : place + stop - start]
            pieces.append(piece)
            start += len(piece)
        return pieces[1].copy() if len(pieces) == 2 else np.concatenate(pieces)


def digest(array: npt.NDArray[Any]) -> str:
    """Return the entry of a config for an array: the SHA-256 of its values as 8 bytes each, little-endian."""
    return "sha256:" + hashlib.sha256(array.astype("<f8" if array.dtype.kind == "f" else "<i8").tobytes()).hexdigest()


def to_json(value: Any) -> str:
    """Return the entry of a config for lists and other configs: JSON without spaces.

    Example:
        >>> to_json([[10, 20], [30, 40]])
        '[[10,20],[30,40]]'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def from_json(name: str, value: object) -> Any:
    """Parse a JSON string of a config; return other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError(f"{name} in the config should be JSON, but got {value!r}") from None
