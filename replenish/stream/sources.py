"""Sources of items: anything that can be iterated, or a callable that begins at a position.

A source that can begin anywhere is *seekable*: a callable `start -> iterable`, a sequence (list, tuple, range), a
numpy array. Any other iterable can only be read from its beginning; an iterator only once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from replenish import checks
from replenish.stream.checksum import checksum

T = TypeVar("T")
Source = Iterable[T] | Callable[[int], Iterable[T]]

# How many items at the beginning of a pass have a checksum.
HEAD = 16


class Opener(Generic[T]):
    """A source, checked: how it is opened at a position, and what is known of it.

    A callable may have an attribute `length`, the number of its items, or None if that is not known.
    """

    def __init__(self, source: Source[T]) -> None:
        self.source: Any = source
        self.length: int | None = None
        self.seekable = True
        self.one_shot = False
        if isinstance(source, (str, bytes)):
            raise TypeError(
                f"source should be an iterable of items or a callable start -> iterable, but got the "
                f"{type(source).__name__} {source!r}; for the lines of a file, give replenish.stream.TextLines(path)"
            )
        if isinstance(source, (Sequence, np.ndarray)):
            self.length = len(source)
            self._open: Callable[[int], Iterable[T]] = self._open_sequence
        elif callable(source):
            _check_takes_a_start(source)
            length = getattr(source, "length", None)
            self.length = None if length is None else checks.integer("length of source", length, minimum=0)
            self._open = source
        elif isinstance(source, Iterable):
            self.seekable = False
            self.one_shot = isinstance(source, Iterator)
            self._open = self._open_iterable
        else:
            raise TypeError(
                f"source should be an iterable of items or a callable start -> iterable, but got {source!r} of type "
                f"{type(source).__name__}"
            )

    def open(self, start: int) -> Iterator[T]:
        """Return an iterator over the items from position `start` of a pass on."""
        return iter(self._open(start))

    def _open_sequence(self, start: int) -> Iterable[T]:
        return map(self.source.__getitem__, range(start, len(self.source))) if start else self.source

    def _open_iterable(self, start: int) -> Iterable[T]:
        assert start == 0, "only a seekable source begins elsewhere"
        return self.source


def _check_takes_a_start(source: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):  # some builtins have none to look at
        return
    try:
        signature.bind(0)
    except TypeError:
        raise TypeError(
            f"source should be a callable of one argument, the position to begin at, but got {source!r}, which takes "
            f"{signature}; a generator function f becomes one as lambda start: itertools.islice(f(), start, None)"
        ) from None


class Reader(Generic[T]):
    """Reads a source in order, pass after pass if it is to `repeat`, and knows where it stands."""

    def __init__(self, opener: Opener[T], repeat: bool) -> None:
        self._opener = opener
        self._repeat = repeat
        self.length = opener.length  # of a pass; None until it is known
        self.offset = 0  # in the pass: the position of the next item
        self.ended = False
        self.head = (0, 0)  # how many of the first items of the pass were compared or are to be, and their checksum
        self._iterator: Iterator[T] | None = None
        self._error: BaseException | None = None
        self._touched = False

    def read(self, count: int, into: list[T]) -> None:
        """Append the next `count` items to `into`; fewer only at the end of a source that does not repeat.

        If the source raises, the items before are in `into`, and a seekable source is tried again at the next call.
        """
        while count and not self.ended:
            before = len(into)
            try:
                if self._iterator is None:
                    self._iterator = self._opened()
                into.extend(islice(self._iterator, count))  # what came before an error stays in the list
            except BaseException as error:
                # A generator that raised says afterwards that it has ended, which must not be believed.
                self._iterator = None
                if not self._opener.seekable:
                    self._error = error
                raise
            finally:
                got = len(into) - before
                if self.offset == 0 and got:
                    size = min(HEAD, got)
                    self.head = (size, checksum(into[before : before + size]))
                self.offset += got
                count -= got
            if count:
                self._end_pass()

    def go_to(self, offset: int, *, skip: bool = True, head: Sequence[int] | None = None) -> None:
        """Make the next item the one at `offset` of a pass.

        A source that cannot seek is at its beginning if `skip` is set, so that `offset` items are dropped, the first
        of which should have the checksum `head`; otherwise the source is at `offset` already.
        """
        opener = self._opener
        if opener.one_shot and self._touched and skip:
            raise ValueError(
                "source should be at its beginning when a state is loaded, but it is an iterator that this stream has "
                "read from; build a new stream with a new iterator"
            )
        self._iterator, self._error, self.ended, self.offset = None, None, False, offset
        self.head = (0, 0) if head is None else (head[0], head[1])
        if opener.seekable or not offset:
            return
        iterator = self._opened_anew()
        if skip:
            size, expected = head or (0, 0)
            first = list(islice(iterator, size))
            if head and checksum(first) != expected and len(first) == size:
                raise ValueError(
                    f"source should give the items of the run that was saved in the same order, but its first {size} "
                    f"differ; seed what shuffles them, or set source_continues=True for a source that goes on by itself"
                )
            skipped = len(first) + sum(1 for _ in islice(iterator, offset - size))
            if skipped < offset:
                raise ValueError(
                    f"source should give the items of the run that was saved, of which {offset} are to be skipped, but "
                    f"it ended after {skipped}"
                )
        self._iterator = iterator

    def _opened(self) -> Iterator[T]:
        if self._opener.seekable:
            return self._opener.open(self.offset)
        if self._error is not None:
            raise RuntimeError(
                f"source raised {self._error!r} and cannot be begun again where it stood, for it cannot seek; build a "
                f"new stream and load a state"
            ) from self._error
        return self._opened_anew()

    def _opened_anew(self) -> Iterator[T]:
        self._touched = True
        return self._opener.open(0)

    def _end_pass(self) -> None:
        """Take note that the source ended at the present offset, and begin again if it repeats."""
        length = self.offset
        if length == 0:
            raise ValueError("source should give at least one item, but it gave none")
        # Without seeking, positions are only counted, and passes may differ in length.
        if self._opener.seekable and self.length is not None and self.length != length:
            raise ValueError(
                f"source should give the same number of items in every pass, {self.length}, but it ended after {length}"
            )
        self.length = length
        self._iterator = None
        if not self._repeat:
            self.ended = True
        elif self._opener.one_shot:
            self._error = StopIteration()
            raise ValueError(
                f"source should be one that can begin again with repeat=True, but it is an iterator, which ended after "
                f"{length} items; give an iterable or a callable start -> iterable, or repeat=False"
            )
        else:
            self.offset = 0
