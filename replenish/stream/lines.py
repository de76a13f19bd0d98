"""The lines of a text file as a source that can begin at any line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from replenish import checks


class TextLines:
    r"""The lines of a text file, without their ends: a source that begins at any line.

    One pass over the file notes where every `every`-th line begins; after that, beginning at a line reads fewer than
    `every` lines before it. The file itself is never held.

    Args:
        path: The file; its lines end with "\n" or "\r\n".
        every: How many lines there are between noted places.
        encoding: How the text is encoded, in an encoding in which a line ends with the byte 10, as in UTF-8.

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
