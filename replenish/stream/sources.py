"""Sources of items: anything that can be iterated, or a callable that begins at a position.

A source that can begin anywhere is *seekable*: a callable `start -> iterable`, such as `TextLines`, a sequence (list,
tuple, range), or a numpy array. Other iterables can only be read from the beginning, and iterators only once.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar
from zlib import crc32

import numpy as np

from replenish import checks

T = TypeVar("T")
Source = Iterable[T] | Callable[[int], Iterable[T]]

# How many of the first items of a pass the checksum covers.
HEAD = 16


class Opener(Generic[T]):
    """Checks a source, and opens it at a position.

    Attributes:
        source: The source. A callable may have its number of items in an attribute `length`.
        length: The number of items; None if it is not known.
        seekable: Whether the source can begin at any position.
        one_shot: Whether it can be read only once.
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
        """Return an iterator over the items of a pass, beginning at position `start`."""
        return iter(self._open(start))

    def _open_sequence(self, start: int) -> Iterable[T]:
        return map(self.source.__getitem__, range(start, len(self.source))) if start else self.source

    def _open_iterable(self, start: int) -> Iterable[T]:
        assert start == 0, "only a seekable source begins elsewhere"
        return self.source


def _check_takes_a_start(source: Callable[..., object]) -> None:
    try:
        inspect.signature(source).bind(0)
    except ValueError:  # some builtins have no signature
        pass
    except TypeError:
        raise TypeError(
            f"source should be a callable of one argument, the position to begin at, but got {source!r}; a generator "
            f"function f becomes one as lambda start: itertools.islice(f(), start, None)"
        ) from None


class Reader(Generic[T]):
    """Reads a source in order, pass after pass if `repeat` is set, and counts its position."""

    def __init__(self, opener: Opener[T], repeat: bool) -> None:
        self._opener = opener
        self._repeat = repeat
        self.length = opener.length  # the items in a pass; None until known
        self.offset = 0  # the position of the next item in the pass
        self.ended = False
        self.head = (0, 0)  # how many of the pass's first items the checksum covers, and the checksum
        self._iterator: Iterator[T] | None = None
        self._error: BaseException | None = None
        self._touched = False

    def read(self, count: int, into: list[T]) -> None:
        """Append the next `count` items to `into`, or fewer at the end of a source that does not repeat.

        If the source raises, `into` has the items before the error, and the next call opens a seekable source again.
        """
        while count and not self.ended:
            before = len(into)
            try:
                if self._iterator is None:
                    self._iterator = self._opened()
                into.extend(islice(self._iterator, count))  # items before an error stay in the list
            except BaseException as error:
                # A generator that has raised would seem to have ended at the next call.
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

        Args:
            offset: The position.
            skip: For a source that cannot seek, whether it is at its beginning, so that `offset` items are dropped.
                Otherwise the source is already at `offset`.
            head: How many of the first items dropped have a known checksum, and the checksum.
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
                    f"differ; seed what shuffles them, or set source_continues=True for a source that continues where "
                    f"it was, as a live one does"
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
                f"source raised {self._error!r} and cannot begin again where it was, since it cannot seek; build a new "
                f"stream and load a state"
            ) from self._error
        return self._opened_anew()

    def _opened_anew(self) -> Iterator[T]:
        self._touched = True
        return self._opener.open(0)

    def _end_pass(self) -> None:
        """Store the length of the source, which ended at the current offset, and begin again if it repeats."""
        length = self.offset
        if length == 0:
            raise ValueError("source should give at least one item, but it gave none")
        # The passes of a source that cannot seek may differ in length.
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


class TextLines:
    r"""The lines of a text file, without their line ends: a source that begins at any line.

    Making it reads the file once and stores where every `every`-th line begins. After that, beginning at a line reads
    fewer than `every` lines before it. The file is never held in memory.

    Args:
        path: The file; its lines end with "\n" or "\r\n".
        every: The number of lines between stored places.
        encoding: The encoding of the text. Its lines must end with the byte 10, as in UTF-8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "lines.txt")
        ...     _ = path.write_text("zero\none\ntwo\n")
        ...     lines = TextLines(path, every=2)
        ...     print(lines.length, list(lines(1)))
        3 ['one', 'two']
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int = 1024, encoding: str = "utf-8") -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path should name one text file, but got {path!r} of type {type(path).__name__}")
        self.path = Path(path)
        self.every = checks.integer("every", every, minimum=1)
        self.encoding = encoding
        self.length = 0
        self._places = [0]  # where lines 0, every, 2 every, ... begin
        with self.path.open("rb") as file:
            while chunk := list(islice(file, self.every)):
                self.length += len(chunk)
                self._places.append(self._places[-1] + sum(map(len, chunk)))

    def __call__(self, start: int) -> Iterator[str]:
        """Yield the lines from number `start` on."""
        if start >= self.length:
            return
        with self.path.open("rb") as file:
            file.seek(self._places[start // self.every])
            for line in islice(file, start % self.every, None):
                yield line.decode(self.encoding).removesuffix("\n").removesuffix("\r")


def checksum(items: Iterable[object]) -> int:
    """Return a number in [0, 2**32) that is equal for equal items.

    Only strings, bytes and integers count, also in a tuple or as values of a dict. Other parts are left out, since
    images may be augmented at random, and equal objects need not have equal bytes.

    Example:
        >>> checksum(["a", ("b", 3)]) == checksum(["a", ("b", 3)]) != checksum(["a", ("b", 4)])
        True
    """
    total = 0
    for item in items:
        parts = item.values() if isinstance(item, Mapping) else item if isinstance(item, tuple) else (item,)
        total = crc32(b"item", total)
        for part in parts:
            if isinstance(part, (int, np.integer)):
                total = crc32(f"{int(part)};".encode(), total)
            elif isinstance(part, (str, bytes)):
                total = crc32(part.encode(errors="surrogatepass") if isinstance(part, str) else part, total)
    return total
